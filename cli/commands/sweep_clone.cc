#include "cli/commands/sweep_clone.h"

#include "base/result.h"
#include "cli/algorithms.h"
#include "cli/json.h"

namespace attune::cli {
namespace {

Error FaultsOf(const std::vector<sweepfile::Fault>& faults) {
  std::string text;
  for (const sweepfile::Fault& fault : faults) {
    text += (text.empty() ? "" : "\n") + (fault.path.empty() ? "" : fault.path + ": ") +
            sweepfile::Sentence(fault);
  }
  return {ErrorCode::kInvalid, text};
}

}  // namespace

Result<SweepDocument> CloneSweep(Api& api, const std::string& id,
                                 const std::vector<sweepfile::Setting>& settings) {
  const auto resolved = api.ResolvedSweep(id);
  if (!resolved.ok()) return resolved.error();
  const sweepfile::Parsed clone =
      sweepfile::ParseEdited(Dump(resolved->resolved), settings, {.algorithms = &AllAlgorithms()});
  if (!clone.spec) return FaultsOf(clone.faults);
  return SweepDocument{.path = "clone-of-" + id + ".yaml",
                       .text = sweepfile::ResolvedYaml(*clone.spec)};
}

}  // namespace attune::cli
