#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/space/value.h"

// Keys of maps that a user writes: in a sweep file, in the options of an algorithm or in the body
// of a request.
namespace attune {

enum class KeyType {
  kText,
  kInteger,
  kReal,
  kNumber,  // an integer or a real; the value keeps its type
  kBoolean,
  kDuration,  // seconds, as a double
  kSize,      // bytes, as an integer
  kValue,     // a boolean, a number or a text
  kTexts,     // a list of texts
  kValues,    // a list of values
  kTextMap,   // names and texts
  kChoices,   // names, each with one text or a list of allowed texts
  kSection,   // a map with fixed keys
  kSections,  // a list of such maps
  kMap,       // names, each with a map with fixed keys
  kConfigs,   // a list of names and values
};

struct Key {
  std::string name;  // the rows of a sweep include the section: stop.max_trials
  KeyType type = KeyType::kText;
  std::string help;  // one sentence, without a full stop
  bool required = false;
  std::optional<Value> fallback;  // the default of kText … kSize; absent: see `fallback_words`
  std::string fallback_words;     // describes any other default: the sweep file's folder
  std::optional<double> min;
  std::optional<double> max;
  std::vector<std::string> one_of;
  std::string alias;                                          // another name of this key
  std::vector<std::pair<std::string, std::string>> synonyms;  // (synonym, word of one_of)

  std::string element;      // the section that describes its items or entries: stop.threshold.NAME
  size_t most = 0;          // maximum number of items or entries; 0: no limit
  std::string items;        // the plural noun for them: metrics
  std::string example;      // an example value of a list or a map
  std::string needs;        // another key of its section that must be given as well
  std::string replaces;     // another key of its section that must not be given as well
  bool sparse = false;      // a list that the written file lacks while it is empty
  std::string scalar;       // the key of the map that a text in its place sets: `path` of `code`
  bool editable = false;    // may change while the sweep runs
  bool of_program = false;  // has no meaning for a sweep without a command
};

// The largest values of an integer and of a step. Both are exact in a double, and so in JSON.
inline constexpr int64_t kMaxKeyInt = 2147483647;
inline constexpr int64_t kMaxKeyStep = 9007199254740991;      // 2^53 - 1
inline constexpr Seconds kMaxDuration{100 * 365.0 * 86'400};  // 100 years

// ---- members of one value --------------------------------------------------------------------

template <class T>
concept WordMember = std::is_enum_v<T>;  // Name(T) is its word; "unknown" after the last one
template <class T>
concept IntegerMember = std::integral<T> || std::same_as<T, Step>;

template <WordMember T>
std::vector<std::string> WordsOf() {
  std::vector<std::string> words;
  for (int i = 0; Name(static_cast<T>(i)) != "unknown"; ++i)
    words.emplace_back(Name(static_cast<T>(i)));
  return words;
}

// A member of a specification as a value; nullopt if it is absent. An empty text counts as absent.
inline std::optional<Value> ToValue(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional<Value>(text);
}
inline std::optional<Value> ToValue(double real) { return real; }
inline std::optional<Value> ToValue(bool boolean) { return boolean; }
inline std::optional<Value> ToValue(Seconds duration) { return duration.value; }
inline std::optional<Value> ToValue(Step step) { return step.value; }
template <std::integral T>
std::optional<Value> ToValue(T number) {
  return static_cast<int64_t>(number);
}
template <WordMember T>
std::optional<Value> ToValue(T word) {
  return std::string(Name(word));
}
inline std::optional<Value> ToValue(const std::optional<double>& real) {
  return real ? std::optional<Value>(*real) : std::nullopt;
}

template <class T>
concept ScalarMember = requires(const T& member) {
  { ToValue(member) } -> std::same_as<std::optional<Value>>;
};

// The inverse of ToValue. REQUIRES: ToValue of a member of this type returned `value`.
inline void FromValue(const Value& value, std::string& text) {
  text = std::get<std::string>(value);
}
inline void FromValue(const Value& value, double& real) { real = std::get<double>(value); }
inline void FromValue(const Value& value, std::optional<double>& real) {
  real = std::get<double>(value);
}
inline void FromValue(const Value& value, bool& boolean) { boolean = std::get<bool>(value); }
inline void FromValue(const Value& value, Seconds& duration) {
  duration.value = std::get<double>(value);
}
inline void FromValue(const Value& value, Step& step) { step.value = std::get<int64_t>(value); }
template <std::integral T>
void FromValue(const Value& value, T& number) {
  number = static_cast<T>(std::get<int64_t>(value));
}
template <WordMember T>
void FromValue(const Value& value, T& word) {
  const auto& name = std::get<std::string>(value);
  for (int i = 0; Name(static_cast<T>(i)) != "unknown"; ++i) {
    if (Name(static_cast<T>(i)) == name) word = static_cast<T>(i);
  }
}

// ---- what the type of a member determines about its key --------------------------------------

// CompleteKey sets what the key leaves open: its type, its bounds and its default. `initial` is the
// member in a new struct.
void CompleteNumber(Key& key, KeyType type, double max, std::optional<Value> initial);
inline void CompleteKey(Key&, const std::string&) {}
inline void CompleteKey(Key& key, const std::optional<double>&) { key.type = KeyType::kReal; }
inline void CompleteKey(Key& key, bool initial) {
  key.type = KeyType::kBoolean;
  key.fallback = initial;
}
inline void CompleteKey(Key& key, double initial) {
  key.type = KeyType::kReal;
  if (!key.required && !key.fallback) key.fallback = initial;
}
inline void CompleteKey(Key& key, Seconds initial) {
  CompleteNumber(key, KeyType::kDuration, kMaxDuration.value, ToValue(initial));
}
inline void CompleteKey(Key& key, int64_t initial) {
  key.type = KeyType::kSize;
  key.fallback = initial;
}
inline void CompleteKey(Key& key, int initial) {
  CompleteNumber(key, KeyType::kInteger, kMaxKeyInt, ToValue(initial));
}
inline void CompleteKey(Key& key, uint64_t initial) {
  CompleteNumber(key, KeyType::kInteger, kMaxKeyStep, ToValue(initial));
}
inline void CompleteKey(Key& key, Step initial) {
  CompleteNumber(key, KeyType::kInteger, kMaxKeyStep, ToValue(initial));
}
template <WordMember T>
void CompleteKey(Key& key, T initial) {
  key.one_of = WordsOf<T>();
  if (!key.required && key.fallback_words.empty()) key.fallback = ToValue(initial);
}

}  // namespace attune
