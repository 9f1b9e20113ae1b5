#include "cli/check_sweep.h"

#include <filesystem>

#include "base/result.h"
#include "cli/algorithms.h"
#include "sweepfile/sweepfile.h"

namespace attune::cli {

CheckedSweep CheckSweep(const SweepDocument& document, ProgramCheck program) {
  const std::string file = document.path.string();
  const auto exists = [program](const std::string& path) {
    std::error_code error;
    return program == ProgramCheck::kNone || std::filesystem::exists(path, error);
  };
  sweepfile::Parsed parsed =
      sweepfile::ParseSweep(document.text, {.file = document.path.filename().string(),
                                            .directory = document.directory().string(),
                                            .algorithms = &AllAlgorithms(),
                                            .program_exists = exists});
  CheckedSweep checked;
  for (const sweepfile::Fault& fault : parsed.faults) {
    checked.faults.push_back(sweepfile::FormatFault(file, fault));
  }
  if (!parsed.spec.has_value()) return checked;

  // What only the algorithms themselves can tell, such as a grid over an endless range.
  const Result<std::unique_ptr<Searcher>> searcher = AllAlgorithms().MakeSearcher(*parsed.spec);
  if (!searcher.ok()) checked.faults.push_back(file + ": " + searcher.error().message);
  const Result<std::unique_ptr<Scheduler>> scheduler = AllAlgorithms().MakeScheduler(*parsed.spec);
  if (!scheduler.ok()) checked.faults.push_back(file + ": " + scheduler.error().message);
  if (!checked.faults.empty()) return checked;
  checked.rungs = (*scheduler)->Rungs();
  checked.spec = std::move(parsed.spec);
  return checked;
}

}  // namespace attune::cli
