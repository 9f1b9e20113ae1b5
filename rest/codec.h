#pragma once

// Writes the generated structs of rest/contract.h as JSON, and reads them.

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"

namespace attune::rest {

using Json = nlohmann::ordered_json;

// A number that may be NaN or infinite. In JSON these are the strings "nan", "inf" and "-inf".
struct Real {
  Real(double number = 0) : value(number) {}
  operator double() const { return value; }

  double value;
};

// A member that may be left out. (A member of type std::optional may be null.)
template <class T>
struct OptionalMember : std::optional<T> {
  using std::optional<T>::optional;
  OptionalMember(std::optional<T> value) : std::optional<T>(std::move(value)) {}
};

// A problem that the API may answer (RFC 9457).
struct ProblemRow {
  const char* type;
  int status;
  const char* title;
};

// A query parameter of an operation.
struct QueryParameter {
  std::string_view method;
  std::string_view path;  // in the contract's form: /api/v1/sweeps:validate
  std::string_view name;
};

// The bounds that a schema sets for a number, a text or a list.
struct Bounds {
  std::optional<double> min = {};
  std::optional<double> max = {};
  size_t min_length = 0;  // of a string, in characters
  // of a string, or of each string of a list
  size_t max_length = std::numeric_limits<size_t>::max();
  size_t max_items = std::numeric_limits<size_t>::max();  // items of a list
};

// A value of a JSON document that is being read. It knows its path in the document, for messages.
class JsonPlace {
 public:
  explicit JsonPlace(const Json& json) : json_(json) {}

  const Json& json() const { return json_; }
  void ExpectObject() const;
  // Calls `read` with the member; fails if there is none.
  template <class Read>
  void Member(const char* name, Read read) const {
    read(JsonPlace(Find(name), this, name));
  }
  bool Has(const char* name) const { return json_.contains(name); }
  template <class Read>
  void Element(size_t index, Read read) const {
    read(JsonPlace(json_[index], this, nullptr, index));
  }
  // Reports that the value is not `expected`. Parse returns this as its error.
  [[noreturn]] void Fail(const std::string& expected) const;

 private:
  JsonPlace(const Json& json, const JsonPlace* parent, const char* name, size_t index = 0)
      : json_(json), parent_(parent), name_(name), index_(index) {}

  const Json& Find(const char* name) const;
  std::string Path() const;

  const Json& json_;
  const JsonPlace* parent_ = nullptr;
  const char* name_ = nullptr;  // null: an element of a list
  size_t index_ = 0;
};

void Write(Real value, Json& json);
inline void Write(const std::string& value, Json& json) { json = value; }
inline void Write(bool value, Json& json) { json = value; }
inline void Write(int64_t value, Json& json) { json = value; }
inline void Write(uint64_t value, Json& json) { json = value; }
inline void Write(double value, Json& json) { json = value; }
inline void Write(const Json& value, Json& json) { json = value; }

void Read(const JsonPlace& place, Real& value);
void Read(const JsonPlace& place, std::string& value);
void Read(const JsonPlace& place, bool& value);
void Read(const JsonPlace& place, int64_t& value);
void Read(const JsonPlace& place, uint64_t& value);
void Read(const JsonPlace& place, double& value);
inline void Read(const JsonPlace& place, Json& value) { value = place.json(); }

// These declarations let the templates find each other's Write and Read.
template <class T>
void Write(const std::optional<T>& value, Json& json);
template <class T>
void Write(const std::vector<T>& values, Json& json);
template <class T>
void Write(const std::map<std::string, T>& values, Json& json);
template <class T>
void Read(const JsonPlace& place, std::optional<T>& value);
template <class T>
void Read(const JsonPlace& place, std::vector<T>& values);
template <class T>
void Read(const JsonPlace& place, std::map<std::string, T>& values);

template <class T>
void Write(const std::optional<T>& value, Json& json) {
  if (value) {
    Write(*value, json);
  } else {
    json = nullptr;
  }
}

template <class T>
void Write(const std::vector<T>& values, Json& json) {
  json = Json::array();
  for (const T& value : values) Write(value, json.emplace_back());
}

template <class T>
void Write(const std::map<std::string, T>& values, Json& json) {
  json = Json::object();
  for (const auto& [name, value] : values) Write(value, json[name]);
}

template <class T>
void Read(const JsonPlace& place, std::optional<T>& value) {
  if (place.json().is_null()) {
    value.reset();
  } else {
    Read(place, value.emplace());
  }
}

template <class T>
void Read(const JsonPlace& place, std::vector<T>& values) {
  if (!place.json().is_array()) place.Fail("a list");
  values.resize(place.json().size());
  for (size_t i = 0; i < values.size(); ++i)
    place.Element(i, [&](const JsonPlace& element) { Read(element, values[i]); });
}

template <class T>
void Read(const JsonPlace& place, std::map<std::string, T>& values) {
  place.ExpectObject();
  for (const auto& [name, value] : place.json().items())
    place.Member(name.c_str(), [&](const JsonPlace& member) { Read(member, values[name]); });
}

template <class T>
void Put(Json& json, const char* name, const T& value) {
  Write(value, json[name]);
}

template <class T>
void Put(Json& json, const char* name, const OptionalMember<T>& value) {
  if (value) Write(*value, json[name]);
}

template <class T>
void Get(const JsonPlace& place, const char* name, T& value) {
  place.Member(name, [&](const JsonPlace& member) { Read(member, value); });
}

template <class T>
void Get(const JsonPlace& place, const char* name, OptionalMember<T>& value) {
  if (place.Has(name)) Get(place, name, value.emplace());
}

void CheckBounds(const JsonPlace& place, double value, const Bounds& bounds);
void CheckBounds(const JsonPlace& place, const std::string& value, const Bounds& bounds);
void CheckItems(const JsonPlace& place, size_t items, const Bounds& bounds);
template <class T>
void CheckBounds(const JsonPlace& place, const std::vector<T>& values, const Bounds& bounds) {
  CheckItems(place, values.size(), bounds);
  if constexpr (std::is_same_v<T, std::string>) {
    for (size_t i = 0; i < values.size(); ++i)
      place.Element(i, [&](const JsonPlace& element) { CheckBounds(element, values[i], bounds); });
  }
}

template <class T>
void Get(const JsonPlace& place, const char* name, T& value, const Bounds& bounds) {
  place.Member(name, [&](const JsonPlace& member) {
    Read(member, value);
    CheckBounds(member, value, bounds);
  });
}

template <class T>
void Get(const JsonPlace& place, const char* name, OptionalMember<T>& value, const Bounds& bounds) {
  if (place.Has(name)) Get(place, name, value.emplace(), bounds);
}

template <class T>
Json ToJson(const T& value) {
  Json json;
  Write(value, json);
  return json;
}

// Calls `read` and returns the error if it called Fail.
Status TryRead(const Json& json, void (*read)(const JsonPlace& place, void* into), void* into);

// Reads a struct of the contract and ignores unknown members. kInvalid: the document does not have
// the form that the contract describes; the message names the member.
template <class T>
Result<T> Parse(const Json& json) {
  T value;
  const Status status = TryRead(
      json, [](const JsonPlace& place, void* into) { Read(place, *static_cast<T*>(into)); },
      &value);
  if (!status.ok()) return status.error();
  return value;
}

}  // namespace attune::rest
