#include "sweepfile/reader.h"

#include <algorithm>
#include <cctype>

#include "base/result.h"
#include "sweepfile/scalar.h"
#include "sweepfile/suggest.h"

namespace attune::sweepfile {
namespace {

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string LowerFirst(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

// A key of another section that the writer may have meant: max_trials → stop.max_trials.
std::string ElsewhereInFile(std::string_view key) {
  for (const Section* section : {&FileKeys(), &ReportsKeys(), &MetricKeys(), &ResourcesKeys(),
                                 &CheckpointKeys(), &FailureKeys(), &StopKeys(), &PlateauKeys()}) {
    for (const Key& known : section->keys) {
      if (known.name == key && known.name != "name") {
        return section->name + (section->name.empty() ? "" : ".") + known.name;
      }
    }
  }
  return "";
}

void UnknownKey(const Section& section, const Spot& spot, const MapEntry& entry, Faults& faults) {
  const Place place = spot.place.Key(entry.key);
  if (faults.full()) return faults.Add(place, entry.mark, "unknown key");
  std::vector<std::string> known = section.Names();
  if (known.empty()) return faults.Add(place, entry.mark, "unknown key; there are none here");
  const std::string names = Join(known);
  for (const Key& key : section.keys) {
    if (!key.alias.empty()) known.push_back(key.alias);
  }
  std::string meant = Suggest(entry.key, known);
  if (meant.empty()) meant = ElsewhereInFile(entry.key);
  faults.Add(place, entry.mark, meant.empty() ? "unknown key; there are: " + names : "unknown key",
             meant);
}

std::string BoundText(const Key& key, double bound) {
  if (key.type == KeyType::kDuration) return FormatDuration(Seconds{bound});
  if (key.type == KeyType::kReal || key.type == KeyType::kNumber) return FormatReal(bound);
  return std::to_string(static_cast<int64_t>(bound));
}

std::string ValueText(const Key& key, const Value& value) {
  if (key.type == KeyType::kDuration) return FormatDuration(Seconds{std::get<double>(value)});
  return FormatValue(value);
}

Status CheckBounds(const Key& key, const Value& value) {
  double number = 0;
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    number = static_cast<double>(*integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    number = *real;
  } else {
    return {};
  }
  if (key.min && number < *key.min) {
    return Error{ErrorCode::kInvalid, ValueText(key, value) + " is below the smallest allowed, " +
                                          BoundText(key, *key.min)};
  }
  if (key.max && number > *key.max) {
    return Error{ErrorCode::kInvalid, ValueText(key, value) + " is above the largest allowed, " +
                                          BoundText(key, *key.max)};
  }
  return {};
}

template <class T>
Result<Value> Held(const Result<T>& result) {
  if (!result.ok()) return result.error();
  return Value(*result);
}

Result<Value> ReadScalar(const Key& key, const Node& node) {
  switch (key.type) {
    case KeyType::kInteger:
      return Held(ReadInteger(node));
    case KeyType::kReal:
      return Held(ReadReal(node));
    case KeyType::kNumber:
      return ReadNumber(node);
    case KeyType::kBoolean:
      return Held(ReadBoolean(node));
    case KeyType::kSize:
      return Held(ReadSize(node));
    case KeyType::kValue:
      return ReadValue(node);
    case KeyType::kDuration: {
      const Result<Seconds> duration = ReadDuration(node);
      if (!duration.ok()) return duration.error();
      return Value(duration->value);
    }
    default:
      return Held(ReadText(node));
  }
}

bool IsScalar(KeyType type) { return type <= KeyType::kValue; }

// The word itself, or the one that it is a synonym of; a fault where it is not allowed.
void CheckWord(const Key& key, const Spot& spot, Value& value, Faults& faults) {
  auto& text = std::get<std::string>(value);
  for (const auto& [synonym, word] : key.synonyms) {
    if (text == synonym) text = word;
  }
  if (key.one_of.empty()) {
    const bool may_be_empty = key.fallback && std::get<std::string>(*key.fallback).empty();
    if (text.empty() && !may_be_empty) faults.AtValue(spot, "is empty; write a text");
    return;
  }
  if (std::find(key.one_of.begin(), key.one_of.end(), text) != key.one_of.end()) return;
  std::vector<std::string> words = key.one_of;
  for (const auto& [synonym, word] : key.synonyms) words.push_back(synonym);
  faults.AddMisspelt(spot.place, spot.ValueMark(),
                     Describe(*spot.node) + " is not one of: " + Join(key.one_of), text, words);
}

}  // namespace

void Faults::Add(const Place& place, Mark mark, std::string message, std::string suggestion) {
  ++count_;
  if (out_.size() >= kMaxFaults) return;
  out_.push_back(MakeFault(place, mark, std::move(message), std::move(suggestion)));
}

void Faults::AtValue(const Spot& spot, std::string message, std::string suggestion) {
  Add(spot.place, spot.ValueMark(), std::move(message), std::move(suggestion));
}

void Faults::AddMisspelt(const Place& place, Mark mark, std::string message, std::string_view word,
                         const std::vector<std::string>& known) {
  Add(place, mark, std::move(message), full() ? "" : Suggest(word, known));
}

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
                 key->alias + " is another name of " + key->name + "; remove one of them");
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

  for (const Key& key : section.keys) {
    if (!key.required || fields.Given(key.name)) continue;
    std::string message = "missing: " + LowerFirst(key.help);
    if (!key.one_of.empty()) message += ": " + Join(key.one_of);
    faults.Add(spot.place.Key(key.name), spot.mark, message);
  }
  return fields;
}

std::vector<std::string> ReadTexts(const Spot& spot, Faults& faults) {
  std::vector<std::string> texts;
  if (spot.node == nullptr) return texts;
  if (spot.node->kind != Node::Kind::kList) {
    faults.AtValue(spot, "expected a list of texts, found " + Describe(*spot.node) +
                             (spot.node->kind == Node::Kind::kScalar ? "; write it in [ ]" : ""));
    return texts;
  }
  for (size_t i = 0; i < spot.node->items.size(); ++i) {
    const Result<std::string> text = ReadText(spot.node->items[i]);
    if (text.ok()) {
      texts.push_back(*text);
    } else {
      faults.AtValue(Item(spot, i), text.error().message);
    }
  }
  return texts;
}

std::vector<std::pair<std::string, std::string>> ReadTextMap(const Spot& spot, Faults& faults) {
  std::vector<std::pair<std::string, std::string>> texts;
  if (spot.node == nullptr) return texts;
  if (spot.node->kind != Node::Kind::kMap) {
    faults.AtValue(spot, "expected a map of texts, found " + Describe(*spot.node));
    return texts;
  }
  for (const MapEntry& entry : spot.node->entries) {
    const Result<std::string> text = ReadText(entry.value);
    if (text.ok()) {
      texts.emplace_back(entry.key, *text);
    } else {
      faults.AtValue(Child(spot, entry), text.error().message);
    }
  }
  return texts;
}

void CheckName(const Spot& spot, const std::string& name, Faults& faults) {
  const auto characters = std::ranges::count_if(
      name, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  if (static_cast<size_t>(characters) > kMaxNameChars) {
    faults.AtValue(spot, "longer than " + std::to_string(kMaxNameChars) + " characters");
  }
  if (name.find_first_of("\r\n\t") != name.npos) faults.AtValue(spot, "must be one line");
}

}  // namespace attune::sweepfile
