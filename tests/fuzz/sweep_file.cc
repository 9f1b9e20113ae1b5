#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "cli/algorithms.h"
#include "sweepfile/codec.h"
#include "sweepfile/sweepfile.h"

// A text must be refused with a position in it, or give a sweep. The resolved form and the JSON of
// the sweep must give the same sweep.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const attune::sweepfile::ParseOptions options{
      .directory = "/sweeps", .algorithms = &attune::cli::AllAlgorithms(), .program_fault = {}};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = attune::sweepfile::ParseSweep(text, options);
  ATTUNE_CHECK(parsed.spec.has_value() == parsed.faults.empty());
  for (const auto& fault : parsed.faults) {
    ATTUNE_CHECK(fault.line >= 1 && fault.column >= 1 && !fault.message.empty());
  }
  if (!parsed.spec) return 0;
  const auto again =
      attune::sweepfile::ParseSweep(attune::sweepfile::ResolvedYaml(*parsed.spec), options);
  ATTUNE_CHECK(again.spec.has_value() && *again.spec == *parsed.spec);
  using attune::sweepfile::Json;
  const auto decoded =
      attune::sweepfile::SpecFromJson(Json::parse(attune::sweepfile::ToJson(*parsed.spec).dump()));
  ATTUNE_CHECK(decoded.ok() && *decoded == *parsed.spec);
  return 0;
}
