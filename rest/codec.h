#pragma once

// How the generated structs of rest/contract.h are written as JSON and read from it.

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

// A number that may be NaN or infinite. JSON has the strings "nan", "inf" and "-inf" for those.
struct Real {
  Real(double number = 0) : value(number) {}
  operator double() const { return value; }

  double value;
};

// A member that may be left out. (std::optional is a member that may be null.)
template <class T>
struct Absent : std::optional<T> {
  using std::optional<T>::optional;
  Absent(std::optional<T> value) : std::optional<T>(std::move(value)) {}
};

// A problem that the API answers (RFC 9457).
struct ProblemRow {
  const char* type;
  int status;
  const char* title;
};

// A parameter that the query of an operation may have.
struct QueryParameter {
  std::string_view method;
  std::string_view path;  // of the contract: /api/v1/sweeps:validate
  std::string_view name;
};

// The bounds that a schema sets for a number, a text or a list.
struct Bounds {
  std::optional<double> min = {};
  std::optional<double> max = {};
  size_t min_length = 0;                                   // of a text, in characters
  size_t max_length = std::numeric_limits<size_t>::max();  // of a text or the texts of a list
  size_t max_items = std::numeric_limits<size_t>::max();   // of a list
};

// A value of a document that is being read, and where it is, for messages.
class Place {
 public:
  explicit Place(const Json& json) : json_(json) {}

  const Json& json() const { return json_; }
  void ExpectObject() const;
  // Calls `read` with the member; fails if there is none.
  template <class Read>
  void Member(const char* name, Read read) const {
    read(Place(Find(name), this, name));
  }
  bool Has(const char* name) const { return json_.contains(name); }
  template <class Read>
  void Element(size_t index, Read read) const {
    read(Place(json_[index], this, nullptr, index));
  }
  // Ends the reading; Parse returns the error.
  [[noreturn]] void Fail(const std::string& expected) const;

 private:
  Place(const Json& json, const Place* parent, const char* name, size_t index = 0)
      : json_(json), parent_(parent), name_(name), index_(index) {}

  const Json& Find(const char* name) const;
  std::string Path() const;

  const Json& json_;
  const Place* parent_ = nullptr;
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

void Read(const Place& place, Real& value);
void Read(const Place& place, std::string& value);
void Read(const Place& place, bool& value);
void Read(const Place& place, int64_t& value);
void Read(const Place& place, uint64_t& value);
void Read(const Place& place, double& value);
inline void Read(const Place& place, Json& value) { value = place.json(); }

// The templates below find Write and Read of a struct by its namespace.
template <class T>
void Write(const std::optional<T>& value, Json& json);
template <class T>
void Write(const std::vector<T>& values, Json& json);
template <class T>
void Write(const std::map<std::string, T>& values, Json& json);
template <class T>
void Read(const Place& place, std::optional<T>& value);
template <class T>
void Read(const Place& place, std::vector<T>& values);
template <class T>
void Read(const Place& place, std::map<std::string, T>& values);

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
void Read(const Place& place, std::optional<T>& value) {
  if (place.json().is_null()) {
    value.reset();
  } else {
    Read(place, value.emplace());
  }
}

template <class T>
void Read(const Place& place, std::vector<T>& values) {
  if (!place.json().is_array()) place.Fail("a list");
  values.resize(place.json().size());
  for (size_t i = 0; i < values.size(); ++i)
    place.Element(i, [&](const Place& element) { Read(element, values[i]); });
}

template <class T>
void Read(const Place& place, std::map<std::string, T>& values) {
  place.ExpectObject();
  for (const auto& [name, value] : place.json().items())
    place.Member(name.c_str(), [&](const Place& member) { Read(member, values[name]); });
}

template <class T>
void Put(Json& json, const char* name, const T& value) {
  Write(value, json[name]);
}

template <class T>
void Put(Json& json, const char* name, const Absent<T>& value) {
  if (value) Write(*value, json[name]);
}

template <class T>
void Get(const Place& place, const char* name, T& value) {
  place.Member(name, [&](const Place& member) { Read(member, value); });
}

template <class T>
void Get(const Place& place, const char* name, Absent<T>& value) {
  if (place.Has(name)) Get(place, name, value.emplace());
}

void CheckBounds(const Place& place, double value, const Bounds& bounds);
void CheckBounds(const Place& place, const std::string& value, const Bounds& bounds);
void CheckItems(const Place& place, size_t items, const Bounds& bounds);
template <class T>
void CheckBounds(const Place& place, const std::vector<T>& values, const Bounds& bounds) {
  CheckItems(place, values.size(), bounds);
  if constexpr (std::is_same_v<T, std::string>) {
    for (size_t i = 0; i < values.size(); ++i)
      place.Element(i, [&](const Place& element) { CheckBounds(element, values[i], bounds); });
  }
}

template <class T>
void Get(const Place& place, const char* name, T& value, const Bounds& bounds) {
  place.Member(name, [&](const Place& member) {
    Read(member, value);
    CheckBounds(member, value, bounds);
  });
}

template <class T>
void Get(const Place& place, const char* name, Absent<T>& value, const Bounds& bounds) {
  if (place.Has(name)) Get(place, name, value.emplace(), bounds);
}

template <class T>
Json ToJson(const T& value) {
  Json json;
  Write(value, json);
  return json;
}

// Calls `read`; returns the error if it failed.
Status TryRead(const Json& json, void (*read)(const Place& place, void* into), void* into);

// Reads a struct of the contract. Members that it does not know are ignored. kInvalid: the document
// does not have the form that the contract describes; the message names the member.
template <class T>
Result<T> Parse(const Json& json) {
  T value;
  const Status status = TryRead(
      json, [](const Place& place, void* into) { Read(place, *static_cast<T*>(into)); }, &value);
  if (!status.ok()) return status.error();
  return value;
}

}  // namespace attune::rest
