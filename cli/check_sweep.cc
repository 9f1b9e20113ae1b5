#include "cli/check_sweep.h"

#include <filesystem>

#include "base/result.h"
#include "cli/algorithms.h"
#include "core/log/secret_names.h"
#include "core/space/domain.h"
#include "core/space/value.h"
#include "object_storage/address.h"
#include "sweepfile/sweepfile.h"

namespace attune::cli {

namespace {

constexpr int64_t kValuesNamed = 6;

// A note with the values of a range whose step does not reach max, which is rarely intended. Empty
// for other domains.
std::string StepNote(const Parameter& parameter) {
  Value max;
  if (const auto* real = std::get_if<FloatDomain>(&parameter.domain))
    max = real->max;
  else if (const auto* whole = std::get_if<IntDomain>(&parameter.domain))
    max = whole->max;
  else
    return "";
  const std::optional<int64_t> count = CountValues(parameter.domain);
  if (!count || SameSetting(ValueAt(parameter.domain, *count - 1), max)) return "";
  const auto text = [&](int64_t index) { return FormatValue(ValueAt(parameter.domain, index)); };
  std::string values = text(0);
  const int64_t named = *count <= kValuesNamed ? *count : kValuesNamed - 2;
  for (int64_t i = 1; i < named; ++i) values += ", " + text(i);
  if (named < *count) values += ", …, " + text(*count - 1);
  return "parameters." + parameter.name + ": the step does not reach max; " +
         (*count == 1 ? "the only value is " : "the values are ") + values;
}

}  // namespace

CheckedSweep CheckSweep(const SweepDocument& document, ProgramCheck program) {
  const std::string file = document.path.string();
  const auto program_fault = [program](const std::string& path) -> std::string {
    std::error_code error;
    if (program == ProgramCheck::kSkip || std::filesystem::exists(path, error)) return "";
    return error ? error.message() : "no such file";
  };
  sweepfile::Parsed parsed =
      sweepfile::ParseSweep(document.text, {.file = document.path.filename().string(),
                                            .directory = document.directory().string(),
                                            .algorithms = &AllAlgorithms(),
                                            .program_fault = program_fault});
  CheckedSweep checked;
  for (const sweepfile::Fault& fault : parsed.faults) {
    checked.faults.push_back(sweepfile::FormatFault(file, fault));
  }
  if (!parsed.spec.has_value()) return checked;

  // Only the algorithms can find some faults, such as a grid over a continuous range.
  const Result<std::unique_ptr<Searcher>> searcher = AllAlgorithms().MakeSearcher(*parsed.spec);
  if (!searcher.ok()) checked.faults.push_back(file + ": " + searcher.error().message);
  const Result<std::unique_ptr<Scheduler>> scheduler = AllAlgorithms().MakeScheduler(*parsed.spec);
  if (!scheduler.ok()) checked.faults.push_back(file + ": " + scheduler.error().message);
  if (const std::string& storage = parsed.spec->storage; !storage.empty()) {
    const auto address = object_storage::ParseAddress(storage);
    if (!address.ok()) checked.faults.push_back(file + ": storage: " + address.error().message);
  }
  if (!checked.faults.empty()) return checked;
  checked.rungs = (*scheduler)->Rungs();
  checked.spec = std::move(parsed.spec);
  checked.notes = SecretWarnings(checked.spec->program);
  for (const Parameter& parameter : checked.spec->space.parameters()) {
    if (std::string note = StepNote(parameter); !note.empty())
      checked.notes.push_back(std::move(note));
  }
  return checked;
}

}  // namespace attune::cli
