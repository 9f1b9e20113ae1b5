#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/log/sweep_keys.h"
#include "sweepfile/checks.h"
#include "sweepfile/keys.h"
#include "sweepfile/reader.h"

// Reads keys into the fields of a spec, as the rows of core/log/sweep_keys.h describe.
namespace attune::sweepfile {

// Whether the node is a list or a map as `key` requires, and not too long. If not, adds a fault.
// Returns false without a fault if the key is absent.
bool CheckItems(const Key& key, const Spot& spot, Faults& faults);

// Reads a list or a map of scalars. Faulty items are left out.
void ReadItems(const Key& key, const Spot& spot, std::vector<std::string>& texts, Faults& faults);
void ReadItems(const Key& key, const Spot& spot, std::vector<SweepId>& sweeps, Faults& faults);
void ReadItems(const Key& key, const Spot& spot,
               std::vector<std::pair<std::string, std::string>>& texts, Faults& faults);
void ReadItems(const Key& key, const Spot& spot, Requirements& required, Faults& faults);

template <HasKeys T>
Fields ReadKeys(const Spot& spot, T& owner, Faults& faults);

template <HasKeys T>
void ReadItems(const Key& key, const Spot& spot, std::optional<T>& section, Faults& faults) {
  if (spot.node == nullptr) return;
  if (key.scalar.empty() || spot.node->kind != Node::Kind::kScalar) {
    ReadKeys(spot, section.emplace(), faults);
    return;
  }
  Node map{.kind = Node::Kind::kMap, .mark = spot.node->mark};
  map.entries.push_back({key.scalar, spot.mark, *spot.node});
  ReadKeys(Spot{&map, spot.place, spot.mark}, section.emplace(), faults);
}

template <HasKeys T>
void ReadItems(const Key& key, const Spot& spot, std::vector<T>& items, Faults& faults) {
  if (!CheckItems(key, spot, faults)) return;
  const auto read = [&](const Spot& item) {
    ReadKeys(item, items.back(), faults);
    CheckElement(items, item, faults);
  };
  for (const MapEntry& entry : spot.node->entries) {
    items.emplace_back();
    if constexpr (IsEntry<T>()) {
      EntryNameOf(items.back()) = entry.key;
      CheckName(Child(spot, entry), entry.key, faults);
    }
    read(Child(spot, entry));
  }
  for (size_t i = 0; i < spot.node->items.size(); ++i) {
    items.emplace_back();
    read(Item(spot, i));
  }
}

// Reads the key's member from the keys of its section. The member does not change if the key is
// absent.
template <class T>
void ReadMember(const Key& key, const Fields& fields, std::string_view name, T& member,
                Faults& faults) {
  if constexpr (!ScalarMember<T>) {
    ReadItems(key, fields.spot(name), member, faults);
  } else if (const Value* value = fields.Find(name)) {
    FromValue(*value, member);
  }
}

// A map whose keys are those of T.
template <HasKeys T>
Fields ReadKeys(const Spot& spot, T& owner, Faults& faults) {
  Fields fields = ReadSection(ElementKeys<T>(), spot, faults);
  ForEachKey<T>([&](const auto& row) {
    ReadMember(row.key, fields, row.key.name, row.FieldIn(owner), faults);
  });
  return fields;
}

}  // namespace attune::sweepfile
