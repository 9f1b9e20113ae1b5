#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/space/value.h"
#include "sweepfile/document.h"
#include "sweepfile/faults.h"
#include "sweepfile/keys.h"

namespace attune::sweepfile {

// A node with its place; `node` is null if the file does not have it.
struct Spot {
  const Node* node = nullptr;
  Place place;
  Mark mark;  // of the key; if `node` is null, of the nearest enclosing map

  Mark ValueMark() const;  // the position for faults of the value
};

// The keys of one map, as its section describes them: scalars with their types and defaults, and
// other values as spots. Unknown, missing and wrong keys become faults. A faulty scalar has its
// default.
class Fields {
 public:
  // Whether the file has the key, valid or not.
  bool IsGiven(std::string_view key) const { return spots_.at(std::string(key)).node != nullptr; }
  const Spot& spot(std::string_view key) const { return spots_.at(std::string(key)); }

  // The value from the file, or else the default; null if there is neither.
  const Value* Find(std::string_view key) const;

  // The value, or T{} if Find returns null. REQUIRES: values of the key's type are a T.
  template <class T>
  T Get(std::string_view key) const {
    const Value* value = Find(key);
    return value == nullptr ? T{} : std::get<T>(*value);
  }

 private:
  friend Fields ReadSection(const Section& section, const Spot& spot, Faults& faults);

  std::map<std::string, Spot, std::less<>> spots_;
  std::map<std::string, Value, std::less<>> values_;
};

Fields ReadSection(const Section& section, const Spot& spot, Faults& faults);

// Adds a fault if the name of a sweep or a metric is too long or has more than one line.
void CheckName(const Spot& spot, const std::string& name, Faults& faults);

Spot Child(const Spot& spot, const MapEntry& entry);
Spot Item(const Spot& spot, size_t index);

}  // namespace attune::sweepfile
