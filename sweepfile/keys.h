#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "core/base/ids.h"
#include "core/space/value.h"

// The one table of the keys of a sweep file. From it come the parser's checks and defaults, the
// words it suggests, the JSON schema and the reference in docs/sweep-file.md.
namespace attune::sweepfile {

// The largest values of an integer, a step and a seed. A double, and so JSON, holds each exactly.
inline constexpr int64_t kMaxInt = 2147483647;
inline constexpr int64_t kMaxStep = 9007199254740991;  // 2^53 - 1
inline constexpr int64_t kMaxSeed = 9007199254740991;

enum class KeyType {
  kText,
  kInteger,
  kReal,
  kNumber,  // an integer or a real, told apart
  kBoolean,
  kDuration,  // seconds, as a double
  kSize,      // bytes, as an integer
  kValue,     // a boolean, a number or a text
  kTexts,     // a list of texts
  kValues,    // a list of values
  kTextMap,   // names and texts
  kChoices,   // names and texts, or lists of texts of which one is meant
  kSection,   // a map with keys of its own: the section of this name
  kSections,  // a list of such maps
  kMap,       // names and what a section of its own describes
  kConfigs,   // a list of names and values
};

struct Key {
  std::string name;
  KeyType type = KeyType::kText;
  std::string help;  // one line, without a full stop
  bool required = false;
  std::optional<Value> fallback;  // of kText … kSize; absent: none, or see `fallback_words`
  std::string fallback_words;     // a default that depends on something: the sweep file's folder
  std::optional<double> min;
  std::optional<double> max;
  std::vector<std::string> one_of;
  std::string alias;                                          // another name of this key
  std::vector<std::pair<std::string, std::string>> synonyms;  // other words for those of one_of
};

// Fallbacks in the form that Key holds.
inline Value Integer(int64_t value) { return value; }
inline Value Duration(Seconds duration) { return duration.value; }

// The keys of one map of the file. `name` is its path, with NAME where any name may stand:
// "" (the file), metric, parameters.NAME, parameters.NAME.when.NAME, constraints.NAME.
struct Section {
  std::string name;
  std::string help;
  std::vector<Key> keys;

  const Key* Find(std::string_view key) const;  // by name or alias; null when unknown
  std::vector<std::string> Names() const;
};

constexpr size_t kMaxParameters = 1000;
constexpr size_t kMaxListedValues = 1000;  // of one parameter, or of one `when`
constexpr size_t kMaxObjectives = 8;
constexpr size_t kMaxConstraints = 32;
constexpr size_t kMaxThresholds = 32;
constexpr size_t kMaxNameChars = 128;      // of a sweep, a parameter, a metric
constexpr size_t kMaxPatternBytes = 1000;  // of a regular expression
constexpr size_t kMaxLogPolicies = 32;
constexpr int kMaxPriority = 1000;                     // and as far below 0
constexpr Seconds kMaxDuration{100 * 365.0 * 86'400};  // what a limit may be; 100 years

const Section& FileKeys();
const Section& ReportsKeys();
const Section& MetricKeys();      // metric, and each one of metrics
const Section& ConstraintKeys();  // constraints.NAME
const Section& ParameterKeys();
const Section& BoundsKeys();  // parameters.NAME.when.NAME, where it is a map
const Section& ResourcesKeys();
const Section& CheckpointKeys();
const Section& FailureKeys();
const Section& LogPolicyKeys();  // each one of failure.on_log
const Section& StopKeys();
const Section& PlateauKeys();    // stop.plateau
const Section& ThresholdKeys();  // stop.threshold.NAME

// What every searcher or scheduler takes; `name` is among its keys and may be any of the
// algorithms'.
Section SearcherKeys(const Algorithms& algorithms);
Section SchedulerKeys(const Algorithms& algorithms);

// The same with the options of one; only the common keys when `name` is unknown.
Section SearcherKeys(const Algorithms& algorithms, std::string_view name);
Section SchedulerKeys(const Algorithms& algorithms, std::string_view name);

// Every section but those of single algorithms, in the order in which people read about them.
std::vector<Section> AllSections(const Algorithms& algorithms);

// integer, duration, text …: as messages and the reference say it.
std::string_view Name(KeyType type);

// The default as it is written in the file; empty when there is none.
std::string FallbackText(const Key& key);

}  // namespace attune::sweepfile
