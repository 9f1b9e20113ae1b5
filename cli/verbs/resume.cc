#include "cli/verbs/resume.h"

#include "base/result.h"
#include "cli/watch/model.h"

namespace attune::cli {

Result<Unfinished> FindUnfinished(Api& api, const SweepDocument& document) {
  const auto list = api.Sweeps();
  if (!list.ok()) return list.error();
  Unfinished unfinished;
  for (const rest::Sweep& entry : list->sweeps) {
    if (IsFinal(entry.state)) continue;
    // The list does not have the files.
    auto sweep = api.Sweep(entry.id);
    if (!sweep.ok()) return sweep.error();
    if (!unfinished.same.has_value() && sweep->file == document.text) {
      unfinished.same = *std::move(sweep);
    } else {
      unfinished.others.push_back(entry.id);
    }
  }
  return unfinished;
}

}  // namespace attune::cli
