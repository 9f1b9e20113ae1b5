#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/log/archive.h"
#include "core/log/event.h"
#include "server/store/json.h"

// Archives (core/log/archive.h) that write and read a JSON object: the payload of an event. Reals
// that JSON cannot express are strings, enumerators are names, and an empty optional is null.
namespace attune::server {

// The result of Name for a number that is not an enumerator.
inline constexpr std::string_view kNoName = "unknown";

// Values in columns of the row, which the payload does not repeat.
struct RowColumns {
  std::optional<SweepId> sweep;
  std::optional<TrialNumber> trial;
};

class JsonWriter {
 public:
  static constexpr bool kReads = false;

  // Adds members to `object`, which outlives the writer.
  explicit JsonWriter(Json& object) : object_(object) {}

  template <class T>
  void operator()(const char* name, const T& value) {
    object_[name] = Encode(value);
  }
  template <class T>
  void Sparse(const char* name, const T& value) {
    if (!(value == T{})) (*this)(name, value);
  }
  template <class Id>
  void Row(const Id&) {}

 private:
  template <class T>
  requires std::is_integral_v<T>
  static Json Encode(T value) { return value; }
  template <class T>
  requires std::is_enum_v<T>
  static Json Encode(T value) { return Name(value); }
  static Json Encode(double value) { return sweepfile::RealToJson(value); }
  static Json Encode(const std::string& text) { return text; }
  static Json Encode(Time time) { return time.us; }
  static Json Encode(const Value& value) { return sweepfile::ToJson(value); }
  static Json Encode(const Config& config) { return sweepfile::ToJson(config); }
  static Json Encode(const Metrics& metrics) { return sweepfile::ToJson(metrics); }
  static Json Encode(const SweepSpec& spec) { return sweepfile::ToJson(spec); }
  template <class Tag, class Rep>
  static Json Encode(const Strong<Tag, Rep>& strong) {
    return Encode(strong.value);
  }
  template <class T>
  static Json Encode(const std::optional<T>& value) {
    return value ? Encode(*value) : Json();
  }
  template <class T>
  static Json Encode(const Boxed<T>& boxed) {
    return Encode(*boxed);
  }
  template <class T>
  static Json Encode(const std::vector<T>& items) {
    Json array = Json::array();
    for (const T& item : items) array.push_back(Encode(item));
    return array;
  }
  template <class T, class... Rest>
  static Json Encode(const std::map<std::string, T, Rest...>& members) {
    Json object = Json::object();
    for (const auto& [name, value] : members) object[name] = Encode(value);
    return object;
  }
  template <class T>
  requires requires(JsonWriter& archive, const T& value) { Fields(archive, value); }
  static Json Encode(const T& value) {
    Json object = Json::object();
    JsonWriter inner(object);
    Fields(inner, value);
    return object;
  }

  Json& object_;
};

// Throws Json::exception if the payload lacks a field or has a field of another type. Ignores
// unknown fields.
class JsonReader {
 public:
  static constexpr bool kReads = true;

  // Both arguments must outlive the reader.
  JsonReader(const Json& object, const RowColumns& row) : object_(object), row_(row) {}

  template <class T>
  void operator()(const char* name, T& value) {
    Read(object_.at(name), value);
  }
  template <class T>
  void Sparse(const char* name, T& value) {
    const auto found = object_.find(name);
    if (found == object_.end()) {
      value = T{};
    } else {
      Read(*found, value);
    }
  }
  void Row(SweepId& sweep) {
    if (!row_.sweep) Refuse("the row names no sweep");
    sweep = *row_.sweep;
  }
  void Row(TrialId& trial) {
    Row(trial.sweep);
    if (!row_.trial) Refuse("the row names no trial");
    trial.number = *row_.trial;
  }

 private:
  [[noreturn]] static void Refuse(const std::string& why) {
    throw Json::other_error::create(501, why, nullptr);
  }

  void Read(const Json& json, bool& value) { value = json.get<bool>(); }
  template <class T>
  requires std::is_integral_v<T>
  void Read(const Json& json, T& value) {
    const bool fits = json.is_number_unsigned()  ? std::in_range<T>(json.get<uint64_t>())
                      : json.is_number_integer() ? std::in_range<T>(json.get<int64_t>())
                                                 : false;
    if (!fits) Refuse(Dump(json) + " is not a whole number in range");
    value = json.get<T>();
  }
  // Enumerators count from 0.
  template <class T>
  requires std::is_enum_v<T>
  void Read(const Json& json, T& value) {
    const auto& word = json.get_ref<const std::string&>();
    for (int i = 0; Name(static_cast<T>(i)) != kNoName; ++i) {
      value = static_cast<T>(i);
      if (Name(value) == word) return;
    }
    Refuse("'" + word + "' is not a known word");
  }
  void Read(const Json& json, double& value) {
    value = ValueOrThrow(sweepfile::RealFromJson(json));
  }
  void Read(const Json& json, std::string& text) { text = json.get<std::string>(); }
  void Read(const Json& json, Time& time) { Read(json, time.us); }
  void Read(const Json& json, Value& value) {
    value = ValueOrThrow(sweepfile::ValueFromJson(json));
  }
  void Read(const Json& json, Config& config) {
    config = ValueOrThrow(sweepfile::ConfigFromJson(json));
  }
  void Read(const Json& json, Metrics& metrics) {
    metrics = ValueOrThrow(sweepfile::MetricsFromJson(json));
  }
  void Read(const Json& json, SweepSpec& spec) {
    spec = ValueOrThrow(sweepfile::SpecFromJson(json));
  }
  template <class Tag, class Rep>
  void Read(const Json& json, Strong<Tag, Rep>& strong) {
    Read(json, strong.value);
  }
  template <class T>
  void Read(const Json& json, std::optional<T>& value) {
    value.reset();
    if (!json.is_null()) Read(json, value.emplace());
  }
  template <class T>
  void Read(const Json& json, Boxed<T>& boxed) {
    Read(json, *boxed);
  }
  template <class T>
  void Read(const Json& json, std::vector<T>& items) {
    if (!json.is_array()) Refuse("a list is expected");
    items.clear();
    for (const Json& item : json) {
      T value{};
      Read(item, value);
      items.push_back(std::move(value));
    }
  }
  template <class T, class... Rest>
  void Read(const Json& json, std::map<std::string, T, Rest...>& members) {
    if (!json.is_object()) Refuse("a map is expected");
    members.clear();
    for (const auto& [name, item] : json.items()) Read(item, members[name]);
  }
  template <class T>
  requires requires(JsonReader& archive, T& value) { Fields(archive, value); }
  void Read(const Json& json, T& value) {
    JsonReader inner(json, row_);
    Fields(inner, value);
  }

  const Json& object_;
  const RowColumns& row_;
};

}  // namespace attune::server
