#include "rest/codec.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/result.h"

namespace attune::rest {
namespace {

struct Unexpected {
  std::string message;
};

}  // namespace

const Json& JsonPlace::Find(const char* name) const {
  const auto found = json_.find(name);
  if (found == json_.end()) throw Unexpected{Path() + " has no member " + name};
  return *found;
}

std::string JsonPlace::Path() const {
  if (parent_ == nullptr) return "the document";
  const std::string parent = parent_->parent_ == nullptr ? "" : parent_->Path();
  if (name_ == nullptr) return parent + "[" + std::to_string(index_) + "]";
  return parent + (parent.empty() ? "" : ".") + name_;
}

void JsonPlace::Fail(const std::string& expected) const {
  throw Unexpected{Path() + " is not " + expected};
}

void JsonPlace::ExpectObject() const {
  if (!json_.is_object()) Fail("an object");
}

void Write(Real value, Json& json) {
  if (std::isfinite(value.value)) {
    json = value.value;
  } else {
    json = std::isnan(value.value) ? "nan" : value.value > 0 ? "inf" : "-inf";
  }
}

void Read(const JsonPlace& place, Real& value) {
  if (place.json().is_number()) {
    value = place.json().get<double>();
    return;
  }
  const std::string* text = place.json().get_ptr<const std::string*>();
  if (text != nullptr && *text == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (text != nullptr && (*text == "inf" || *text == "-inf")) {
    value = (*text == "inf" ? 1 : -1) * std::numeric_limits<double>::infinity();
  } else {
    place.Fail("a number");
  }
}

void CheckBounds(const JsonPlace& place, double value, const Bounds& bounds) {
  if (bounds.min && !(value >= *bounds.min))
    place.Fail("a number of " + Json(*bounds.min).dump() + " or more");
  if (bounds.max && !(value <= *bounds.max))
    place.Fail("a number of " + Json(*bounds.max).dump() + " or less");
}

void CheckBounds(const JsonPlace& place, const std::string& value, const Bounds& bounds) {
  // Counts characters: continuation bytes of UTF-8 begin with the bits 10.
  const auto length = static_cast<size_t>(
      std::ranges::count_if(value, [](char byte) { return (byte & 0xC0) != 0x80; }));
  if (length < bounds.min_length)
    place.Fail("a text of " + std::to_string(bounds.min_length) + " or more characters");
  if (length > bounds.max_length)
    place.Fail("a text of " + std::to_string(bounds.max_length) + " or fewer characters");
}

void CheckItems(const JsonPlace& place, size_t items, const Bounds& bounds) {
  if (items > bounds.max_items)
    place.Fail("a list of " + std::to_string(bounds.max_items) + " or fewer elements");
}

void Read(const JsonPlace& place, std::string& value) {
  if (!place.json().is_string()) place.Fail("a text");
  value = place.json().get<std::string>();
}

void Read(const JsonPlace& place, bool& value) {
  if (!place.json().is_boolean()) place.Fail("a boolean");
  value = place.json().get<bool>();
}

void Read(const JsonPlace& place, int64_t& value) {
  if (!place.json().is_number_integer()) place.Fail("an integer");
  value = place.json().get<int64_t>();
}

void Read(const JsonPlace& place, uint64_t& value) {
  if (!place.json().is_number_unsigned()) place.Fail("an integer of 0 or more");
  value = place.json().get<uint64_t>();
}

void Read(const JsonPlace& place, double& value) {
  if (!place.json().is_number()) place.Fail("a number");
  value = place.json().get<double>();
}

Status TryRead(const Json& json, void (*read)(const JsonPlace& place, void* into), void* into) {
  try {
    read(JsonPlace(json), into);
  } catch (const Unexpected& unexpected) {
    return Invalid(unexpected.message);
  }
  return {};
}

}  // namespace attune::rest
