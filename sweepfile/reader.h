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

// A node with its place; `node` is null where the file leaves it out.
struct Spot {
  const Node* node = nullptr;
  Place place;
  Mark mark;  // of the key; where `node` is null, of the nearest map around it

  Mark ValueMark() const;  // where a fault of the value is told
};

// The keys of one map, read by their table: scalars with their types and defaults, the others as
// spots. Unknown, missing and wrong keys become faults; a faulty scalar reads as its default.
class Fields {
 public:
  // Whether the file has the key, right or wrong.
  bool Given(std::string_view key) const { return spots_.at(std::string(key)).node != nullptr; }
  const Spot& spot(std::string_view key) const { return spots_.at(std::string(key)); }

  // The value as read or by default; null when it is neither there nor has a default.
  const Value* Find(std::string_view key) const;

  // REQUIRES: the key's type holds a T. A T of its own (0, "") where Find is null.
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

// The name of a sweep or a metric, for people: a fault where it is too long or not one line.
void CheckName(const Spot& spot, const std::string& name, Faults& faults);

Spot Child(const Spot& spot, const MapEntry& entry);
Spot Item(const Spot& spot, size_t index);

}  // namespace attune::sweepfile
