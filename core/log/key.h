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

// A key of a map that a user writes: in a sweep file, in the options of an algorithm or in the body
// of a request.
namespace attune {

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
  kSection,   // a map with keys of its own
  kSections,  // a list of such maps
  kMap,       // names and what a section of its own describes
  kConfigs,   // a list of names and values
};

struct Key {
  std::string name;  // in the rows of a sweep with its section: stop.max_trials
  KeyType type = KeyType::kText;
  std::string help;  // one sentence, without a full stop
  bool required = false;
  std::optional<Value> fallback;  // of kText … kSize; absent: none, or see `fallback_words`
  std::string fallback_words;     // a default that depends on something: the sweep file's folder
  std::optional<double> min;
  std::optional<double> max;
  std::vector<std::string> one_of;
  std::string alias;                                          // another name of this key
  std::vector<std::pair<std::string, std::string>> synonyms;  // other words for those of one_of

  std::string element;      // the section of its items or entries: stop.threshold.NAME
  size_t most = 0;          // items or entries; 0: no limit
  std::string items;        // what they are called: metrics
  std::string example;      // of a list or a map
  std::string needs;        // a key of its section without which it means nothing
  std::string replaces;     // a key of its section that it is written instead of
  bool editable = false;    // may change while the sweep runs
  bool of_program = false;  // means nothing for a sweep without a command
};

// The largest values of an integer and of a step. A double, and so JSON, holds each exactly.
inline constexpr int64_t kMaxKeyInt = 2147483647;
inline constexpr int64_t kMaxKeyStep = 9007199254740991;      // 2^53 - 1
inline constexpr Seconds kMaxDuration{100 * 365.0 * 86'400};  // 100 years

// ---- members of one value --------------------------------------------------------------------

template <class T>
concept WordMember = std::is_enum_v<T>;  // Name(T) says its word, and "unknown" beyond the last
template <class T>
concept IntegerMember = std::integral<T> || std::same_as<T, Step>;

template <WordMember T>
std::vector<std::string> WordsOf() {
  std::vector<std::string> words;
  for (int i = 0; Name(static_cast<T>(i)) != "unknown"; ++i)
    words.emplace_back(Name(static_cast<T>(i)));
  return words;
}

// A member of a specification as a value; nullopt where it is absent, as an empty text is.
inline std::optional<Value> ToValue(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional<Value>(text);
}
inline std::optional<Value> ToValue(double real) { return real; }
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

// REQUIRES: `value` is what ToValue gives of such a member.
inline void FromValue(const Value& value, std::string& text) {
  text = std::get<std::string>(value);
}
inline void FromValue(const Value& value, double& real) { real = std::get<double>(value); }
inline void FromValue(const Value& value, std::optional<double>& real) {
  real = std::get<double>(value);
}
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

// ---- what a member says of its key -----------------------------------------------------------

// Fills in what the key leaves open: its type, its bounds and its default. `initial` is the member
// in a new struct.
void CompleteNumber(Key& key, KeyType type, double max, std::optional<Value> initial);
inline void CompleteKey(Key&, const std::string&) {}
inline void CompleteKey(Key& key, const std::optional<double>&) { key.type = KeyType::kReal; }
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
