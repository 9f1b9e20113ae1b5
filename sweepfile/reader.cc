#include "sweepfile/reader.h"

#include <algorithm>
#include <cctype>

#include "base/result.h"
#include "core/space/domain.h"
#include "sweepfile/scalar.h"
#include "sweepfile/suggest.h"

namespace attune::sweepfile {
namespace {

std::string Join(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : std::string(between)) + word;
  return text;
}

std::string LowerFirst(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

// The key of another section that the user may mean: max_trials → stop.max_trials.
std::string ElsewhereInFile(std::string_view key) {
  std::vector<const Section*> sections{&FileKeys(), &ElementKeys<Objective>(),
                                       &ElementKeys<Plateau>()};
  for (const FileSection& section : kFileSections) sections.push_back(&SectionNamed(section.name));
  for (const Section* section : sections) {
    for (const Key& known : section->keys) {
      if (known.name == key && known.name != "name")
        return section->name + (section->name.empty() ? "" : ".") + known.name;
    }
  }
  return "";
}

// The key of this section for which other tuners use this name; empty: none.
std::string NamedElsewhere(const Section& section, std::string_view key) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"max_t", "max"},
      {"max_resource", "max"},
      {"max_epochs", "max"},
      {"grace_period", "min"},
      {"min_resource", "min"},
      {"min_t", "min"},
      {"reduction", "reduction_factor"},
      {"eta", "reduction_factor"}};
  for (const auto& [theirs, ours] : kNames) {
    if (theirs == key && section.Find(ours) != nullptr) return std::string(ours);
  }
  return "";
}

void UnknownKey(const Section& section, const Spot& spot, const MapEntry& entry, Faults& faults) {
  if (faults.full()) return faults.AddUnlisted();
  const Place place = spot.place.Key(entry.key);
  std::vector<std::string> known = section.Names();
  if (known.empty())
    return faults.Add(place, entry.mark, "unknown key; this map has no keys; remove it");
  const std::string names = Join(known, ", ");
  for (const Key& key : section.keys) {
    if (!key.alias.empty()) known.push_back(key.alias);
  }
  std::string meant = Suggest(entry.key, known);
  if (meant.empty()) meant = NamedElsewhere(section, entry.key);
  if (meant.empty()) meant = ElsewhereInFile(entry.key);
  faults.Add(place, entry.mark, meant.empty() ? "unknown key; use one of: " + names : "unknown key",
             meant);
}

Status CheckBounds(const Key& key, const Value& value) {
  const std::optional<double> number = AsNumber(value);
  const bool below = number && key.min && *number < *key.min;
  if (!below && !(number && key.max && *number > *key.max)) return {};
  Value bound = below ? *key.min : *key.max;
  if (std::holds_alternative<int64_t>(value)) bound = static_cast<int64_t>(std::get<double>(bound));
  return Invalid(ValueText(key.type, value) +
                 (below ? " is below the minimum, " : " is above the maximum, ") +
                 ValueText(key.type, bound));
}

Result<Value> ReadScalar(const Key& key, const Node& node) {
  switch (key.type) {
    case KeyType::kInteger:
      return AsValue(ReadInteger(node));
    case KeyType::kReal:
      return AsValue(ReadReal(node));
    case KeyType::kNumber:
      return ReadNumber(node);
    case KeyType::kBoolean:
      return AsValue(ReadBoolean(node));
    case KeyType::kSize:
      return AsValue(ReadSize(node));
    case KeyType::kValue:
      return ReadValue(node);
    case KeyType::kDuration: {
      const Result<Seconds> duration = ReadDuration(node);
      return duration.ok() ? Result<Value>(duration->value) : duration.error();
    }
    default:
      return AsValue(ReadText(node));
  }
}

bool IsScalar(KeyType type) { return type <= KeyType::kValue; }

// Replaces a synonym by its word. Adds a fault if the word is not allowed.
void CheckWord(const Key& key, const Spot& spot, Value& value, Faults& faults) {
  auto& text = std::get<std::string>(value);
  if (key.one_of.empty()) {
    const bool may_be_empty = key.fallback && std::get<std::string>(*key.fallback).empty();
    if (text.empty() && !may_be_empty) faults.AtValue(spot, "is empty; write a text");
    return;
  }
  std::vector<std::string> words = key.one_of;
  for (const auto& [synonym, word] : key.synonyms) {
    words.push_back(synonym);
    if (text == synonym) text = word;
  }
  if (std::ranges::find(key.one_of, text) != key.one_of.end()) return;
  faults.AddMisspelt(spot.place, spot.ValueMark(),
                     Describe(*spot.node) + " is not one of: " + Join(key.one_of, ", "), text,
                     [&] { return words; });
}

// Checks rules between the keys of a map.
void CheckTogether(const Section& section, const Spot& spot, const Fields& fields, Faults& faults) {
  const auto given = [&](const std::string& key) { return fields.IsGiven(key); };
  for (const Key& key : section.keys) {
    if (key.required && !given(key.name)) {
      std::string message = "missing: " + LowerFirst(key.help);
      if (!key.one_of.empty()) message += ": " + Join(key.one_of, ", ");
      faults.Add(spot.place.Key(key.name), spot.mark, message);
    }
    if (!key.needs.empty() && given(key.name) && !given(key.needs))
      faults.AtValue(fields.spot(key.name), "has no effect without " + key.needs + "; add " +
                                                key.needs + ", or remove this key");
    if (!key.replaces.empty() && given(key.name) && given(key.replaces))
      faults.AtValue(fields.spot(key.replaces), key.name + " is also given; remove one of them");
  }
  const bool map = spot.node != nullptr && spot.node->kind == Node::Kind::kMap;
  if (map && !section.any_of.empty() && std::ranges::none_of(section.any_of, given))
    faults.AtValue(spot, "is empty; give " + Join(section.any_of, ", ") +
                             (section.any_of.size() > 1 ? " or both" : ", or remove it"));
}

}  // namespace

Mark Spot::ValueMark() const {
  const bool scalar = node != nullptr && node->kind == Node::Kind::kScalar;
  return scalar ? node->mark : mark;
}

const Value* Fields::Find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

Spot Child(const Spot& spot, const MapEntry& entry) {
  return {&entry.value, spot.place.Key(entry.key), entry.mark};
}

Spot Item(const Spot& spot, size_t index) {
  const Node& item = spot.node->items[index];
  return {&item, spot.place.Index(index), item.mark};
}

Fields ReadSection(const Section& section, const Spot& spot, Faults& faults) {
  Fields fields;
  for (const Key& key : section.keys) {
    fields.spots_[key.name] = {nullptr, spot.place.Key(key.name), spot.mark};
    if (key.fallback) fields.values_[key.name] = *key.fallback;
  }
  const bool left_out = spot.node == nullptr;
  if (!left_out && spot.node->kind != Node::Kind::kMap) {
    std::string message = "expected a map, found " + Describe(*spot.node);
    if (spot.node->kind == Node::Kind::kScalar && section.Find("name") != nullptr) {
      message += "; write {name: " + spot.node->text + "}";
    }
    faults.AtValue(spot, message);
    return fields;
  }

  for (size_t i = 0; !left_out && i < spot.node->entries.size(); ++i) {
    const MapEntry& entry = spot.node->entries[i];
    const Key* key = section.Find(entry.key);
    if (key == nullptr) {
      UnknownKey(section, spot, entry, faults);
      continue;
    }
    Spot child = Child(spot, entry);
    Spot& known = fields.spots_[key->name];
    if (known.node != nullptr) {
      faults.Add(child.place, entry.mark,
                 key->alias + " is another name of " + key->name +
                     ", which is also given; remove one of them");
      continue;
    }
    known = child;
    if (!IsScalar(key->type)) continue;
    Result<Value> value = ReadScalar(*key, entry.value);
    if (!value.ok()) {
      faults.AtValue(child, value.error().message);
    } else if (const Status bounds = CheckBounds(*key, *value); !bounds.ok()) {
      faults.AtValue(child, bounds.error().message);
    } else {
      const size_t before = faults.count();
      if (key->type == KeyType::kText) CheckWord(*key, child, *value, faults);
      if (faults.count() == before) fields.values_[key->name] = std::move(*value);
    }
  }

  CheckTogether(section, spot, fields, faults);
  return fields;
}

void CheckName(const Spot& spot, const std::string& name, Faults& faults) {
  const auto characters = std::ranges::count_if(
      name, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  if (static_cast<size_t>(characters) > kMaxNameChars) {
    faults.AtValue(spot,
                   "longer than " + std::to_string(kMaxNameChars) + " characters; shorten it");
  }
  if (name.find_first_of("\r\n\t") != name.npos)
    faults.AtValue(spot, "must be one line, without tabs");
}

}  // namespace attune::sweepfile
