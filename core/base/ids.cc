#include "core/base/ids.h"

#include <charconv>
#include <optional>

#include "base/parse_number.h"
#include "base/result.h"

namespace attune {
namespace {

// Parses digits as ToString prints them: without sign or leading zeros, and within the type's
// range.
template <class T>
std::optional<T> ParseIdNumber(std::string_view text) {
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  return ParseNumber<T>(text);
}

std::optional<SweepId> ParseSweep(std::string_view text) {
  if (!text.starts_with('s')) return std::nullopt;
  const auto number = ParseIdNumber<uint64_t>(text.substr(1));
  if (!number || *number == 0) return std::nullopt;
  return SweepId(*number);
}

Error NotAnId(std::string_view text, std::string_view what, std::string_view example) {
  return {ErrorCode::kInvalid, "'" + std::string(text) + "' is not the id of a " +
                                   std::string(what) + "; write it as " + std::string(example)};
}

}  // namespace

std::string ToString(SweepId id) { return "s" + std::to_string(id.value); }

std::string ToString(const TrialId& id) {
  return ToString(id.sweep) + "/" + std::to_string(id.number.value);
}

std::string ToString(const AttemptId& id) {
  return ToString(id.trial) + "." + std::to_string(id.number);
}

std::string ToString(const CheckpointId& id) {
  return ToString(id.trial) + "/" + std::to_string(id.attempt) + "-" +
         std::to_string(id.step.value);
}

Result<SweepId> ParseSweepId(std::string_view text) {
  if (const auto sweep = ParseSweep(text)) return *sweep;
  return NotAnId(text, "sweep", "s1");
}

Result<TrialId> ParseTrialId(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    const auto sweep = ParseSweep(text.substr(0, slash));
    const auto number = ParseIdNumber<uint32_t>(text.substr(slash + 1));
    if (sweep && number) return TrialId(*sweep, TrialNumber(*number));
  }
  return NotAnId(text, "trial", "s1/17");
}

}  // namespace attune
