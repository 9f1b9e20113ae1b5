#include "sweepfile/members.h"

#include <algorithm>
#include <set>

#include "base/result.h"
#include "sweepfile/scalar.h"

namespace attune::sweepfile {
namespace {

std::optional<std::string> TextAt(const Spot& spot, Faults& faults) {
  const Result<std::string> text = ReadText(*spot.node);
  if (text.ok()) return *text;
  faults.AtValue(spot, text.error().message);
  return std::nullopt;
}

void ReadLabelValue(const Spot& spot, std::set<std::string>& values, Faults& faults) {
  const auto text = TextAt(spot, faults);
  if (!text) return;
  if (const Status checked = CheckLabelValue(*text); !checked.ok())
    return faults.AtValue(spot, checked.error().message);
  if (!values.insert(*text).second)
    faults.AtValue(spot, *text + " is listed twice; remove one of them");
}

}  // namespace

bool CheckItems(const Key& key, const Spot& spot, Faults& faults) {
  if (spot.node == nullptr) return false;
  const bool map =
      key.type == KeyType::kMap || key.type == KeyType::kTextMap || key.type == KeyType::kChoices;
  if (spot.node->kind != (map ? Node::Kind::kMap : Node::Kind::kList)) {
    std::string expected = "a " + std::string(Name(key.type));
    if (!key.example.empty()) expected = (map ? "a map such as " : "a list such as ") + key.example;
    const bool one = spot.node->kind == Node::Kind::kScalar && key.type == KeyType::kTexts;
    faults.AtValue(spot, "expected " + expected + ", found " + Describe(*spot.node) +
                             (one ? "; write it in [ ]" : ""));
    return false;
  }
  const size_t count = map ? spot.node->entries.size() : spot.node->items.size();
  if (key.most == 0 || count <= key.most) return true;
  faults.AtValue(spot, "has more than " + std::to_string(key.most) + " " + key.items);
  return false;
}

void ReadItems(const Key& key, const Spot& spot, std::vector<std::string>& texts, Faults& faults) {
  if (!CheckItems(key, spot, faults)) return;
  for (size_t i = 0; i < spot.node->items.size(); ++i) {
    if (auto text = TextAt(Item(spot, i), faults)) texts.push_back(*std::move(text));
  }
}

void ReadItems(const Key& key, const Spot& spot, std::vector<SweepId>& sweeps, Faults& faults) {
  if (!CheckItems(key, spot, faults)) return;
  for (size_t i = 0; i < spot.node->items.size(); ++i) {
    const Spot item = Item(spot, i);
    const auto text = TextAt(item, faults);
    if (!text) continue;
    const Result<SweepId> id = ParseSweepId(*text);
    if (!id.ok()) {
      faults.AtValue(item, id.error().message);
    } else if (std::ranges::count(sweeps, *id) > 0) {
      faults.AtValue(item, *text + " is listed twice; remove one of them");
    } else {
      sweeps.push_back(*id);
    }
  }
}

void ReadItems(const Key& key, const Spot& spot,
               std::vector<std::pair<std::string, std::string>>& texts, Faults& faults) {
  if (!CheckItems(key, spot, faults)) return;
  for (const MapEntry& entry : spot.node->entries) {
    if (auto text = TextAt(Child(spot, entry), faults))
      texts.emplace_back(entry.key, *std::move(text));
  }
}

void ReadItems(const Key& key, const Spot& spot, Requirements& required, Faults& faults) {
  if (!CheckItems(key, spot, faults)) return;
  for (const MapEntry& entry : spot.node->entries) {
    const Spot child = Child(spot, entry);
    if (const Status checked = CheckLabelName(entry.key); !checked.ok())
      faults.Add(child.place, entry.mark, checked.error().message);
    std::set<std::string>& values = required[entry.key];
    const std::vector<Node>& items = entry.value.items;
    if (entry.value.kind != Node::Kind::kList) {
      ReadLabelValue(child, values, faults);
    } else if (items.empty() || items.size() > kMaxListedValues) {
      faults.AtValue(child,
                     "list at least one value, and at most " + std::to_string(kMaxListedValues));
    } else {
      for (size_t i = 0; i < items.size(); ++i) ReadLabelValue(Item(child, i), values, faults);
    }
  }
}

}  // namespace attune::sweepfile
