#include "rest/codec.h"

#include <cmath>
#include <limits>

#include "base/result.h"

namespace attune::rest {
namespace {

struct Unexpected {
  std::string message;
};

}  // namespace

const Json& Place::Find(const char* name) const {
  const auto found = json_.find(name);
  if (found == json_.end()) throw Unexpected{Path() + " has no member " + name};
  return *found;
}

std::string Place::Path() const {
  if (parent_ == nullptr) return "the answer";
  const std::string parent = parent_->parent_ == nullptr ? "" : parent_->Path();
  if (name_ == nullptr) return parent + "[" + std::to_string(index_) + "]";
  return parent + (parent.empty() ? "" : ".") + name_;
}

void Place::Fail(const std::string& expected) const {
  throw Unexpected{Path() + " is not " + expected};
}

void Place::ExpectObject() const {
  if (!json_.is_object()) Fail("an object");
}

void Write(Real value, Json& json) {
  if (std::isfinite(value.value)) {
    json = value.value;
  } else {
    json = std::isnan(value.value) ? "nan" : value.value > 0 ? "inf" : "-inf";
  }
}

void Read(const Place& place, Real& value) {
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

void Read(const Place& place, std::string& value) {
  if (!place.json().is_string()) place.Fail("a text");
  value = place.json().get<std::string>();
}

void Read(const Place& place, bool& value) {
  if (!place.json().is_boolean()) place.Fail("a boolean");
  value = place.json().get<bool>();
}

void Read(const Place& place, int64_t& value) {
  if (!place.json().is_number_integer()) place.Fail("an integer");
  value = place.json().get<int64_t>();
}

void Read(const Place& place, uint64_t& value) {
  if (!place.json().is_number_unsigned()) place.Fail("an integer of 0 or more");
  value = place.json().get<uint64_t>();
}

void Read(const Place& place, double& value) {
  if (!place.json().is_number()) place.Fail("a number");
  value = place.json().get<double>();
}

Status Guarded(const Json& json, void (*read)(const Place& place, void* into), void* into) {
  try {
    read(Place(json), into);
  } catch (const Unexpected& unexpected) {
    return Error{ErrorCode::kInternal,
                 unexpected.message + ": server and program may be of different versions"};
  }
  return {};
}

}  // namespace attune::rest
