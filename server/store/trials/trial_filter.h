#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "core/log/event_values.h"

// The language of filters on trials (docs/reference/rest-api.md, web/src/model/filter.ts).
namespace attune::server {

struct TrialFilter;

// Trials that match all parts. Without parts: every trial.
struct MatchAll {
  std::vector<TrialFilter> parts;
};

// Trials that match at least one of two or more parts.
struct MatchAny {
  std::vector<TrialFilter> parts;
};

// Trials that do not match the single part.
struct MatchNot {
  std::vector<TrialFilter> part;
};

struct MatchStates {
  std::vector<TrialState> states;
};

// Trials with one of these tags, in lower case.
struct MatchTags {
  std::vector<std::string> tags;
};

// The trial with this number; nullopt if the number is too large for a trial.
struct MatchNumber {
  std::optional<uint32_t> number;
};

// Trials with this text, in lower case, in a word of theirs.
struct MatchText {
  std::string text;
};

enum class Comparison { kLess, kLessOrEqual, kGreater, kGreaterOrEqual, kEqual, kNotEqual };

// Trials whose value `name` compares so with the operand. Trials without the value do not match.
struct MatchComparison {
  std::string name;  // of a column, a parameter or a metric
  Comparison comparison;
  std::string text;                   // the operand
  std::optional<double> number = {};  // the operand as a number, which may be NaN
};

// Trials whose value `name` is in a closed range. Empty ends are open; if both are empty, any value
// matches.
struct MatchRange {
  std::string name;
  std::string low;
  std::string high;
  std::optional<double> low_number = {};
  std::optional<double> high_number = {};
};

struct TrialFilter {
  size_t position = 1;  // the character of the text where it begins, from 1
  std::variant<MatchAll, MatchAny, MatchNot, MatchStates, MatchTags, MatchNumber, MatchText,
               MatchComparison, MatchRange>
      match = {};
};

// All states in the order of lists: those that have not ended come first.
inline constexpr std::array kTrialStatesInOrder{
    TrialState::kRunning, TrialState::kPending, TrialState::kPaused, TrialState::kCompleted,
    TrialState::kStopped, TrialState::kFailed,  TrialState::kKilled};

inline constexpr size_t kFilterBytesMax = 4'096;
inline constexpr int kFilterWordsMax = 100;  // SQLite's limit of depth is about ten times larger
inline constexpr int kFilterDepthMax = 32;   // groups and negations inside each other

// Parses a filter. kInvalid names the position, in characters from 1, and what is expected there.
Result<TrialFilter> ParseTrialFilter(std::string_view text);

// Whether the name is of a column with a time. Such columns compare with any operand, as text.
bool IsTimeColumn(std::string_view name);

// The text with A to Z as lower case. SQLite's lower() does the same.
std::string InLowerCase(std::string_view text);

}  // namespace attune::server
