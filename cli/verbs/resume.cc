#include "cli/verbs/resume.h"

#include "base/result.h"
#include "cli/watch/model.h"

namespace attune::cli {

Result<Unfinished> FindUnfinished(Api& api, const SweepDocument& document) {
  const Result<Json> sweeps = api.Sweeps();
  if (!sweeps.ok()) return sweeps.error();
  Unfinished unfinished;
  for (const Json& entry : *sweeps) {
    if (IsFinal(TextAt(entry, "state"))) continue;
    const std::string id = TextAt(entry, "id");
    // The list leaves the file out.
    Result<Json> sweep = api.Sweep(id);
    if (!sweep.ok()) return sweep.error();
    if (!unfinished.same.has_value() && TextAt(*sweep, "file") == document.text) {
      unfinished.same = *std::move(sweep);
    } else {
      unfinished.others.push_back(id);
    }
  }
  return unfinished;
}

}  // namespace attune::cli
