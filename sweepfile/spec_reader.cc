#include "sweepfile/spec_reader.h"

#include <algorithm>
#include <utility>

#include "sweepfile/keys.h"
#include "sweepfile/members.h"
#include "sweepfile/space.h"

namespace attune::sweepfile {

SpecReader::SpecReader(const Node& root, const Algorithms* algorithms, Faults& faults)
    : algorithms_(algorithms), faults_(faults) {
  sections_[""] = ReadSection(FileKeys(), {&root, {}, root.mark}, faults);
  for (const FileSection& section : kFileSections) {
    const std::string name = section.name;
    const bool algorithm = name == "searcher" || name == "scheduler";
    sections_[name] = algorithm ? ReadAlgorithm(name)
                                : ReadSection(SectionNamed(name), file().spot(name), faults);
  }
  ReadRows();
  ReadObjectives();
  ReadGpus();
  ReadOptions("searcher", spec_.searcher);
  ReadOptions("scheduler", spec_.scheduler);
  if (auto space = ReadSpace(file().spot("parameters"), faults)) spec_.space = *std::move(space);
}

void SpecReader::ReadRows() {
  ForEachKey<SweepSpec>([&](const auto& row) {
    const KeyPlace place = PlaceOf(row.key);
    ReadMember(row.key, section(place.section), place.name, row.FieldIn(spec_), faults_);
  });
}

void SpecReader::ReadObjectives() {
  const Spot& one = file().spot("metric");
  const Spot& several = file().spot("metrics");
  if (one.node == nullptr && several.node == nullptr)
    return faults_.Add(one.place, one.mark, "missing: the metric that the sweep optimizes");
  if (one.node != nullptr && several.node != nullptr)
    return faults_.Add(several.place, several.mark,
                       "metric is also given; move it to the start of metrics");
  const Key& key = *FileKeys().Find("metrics");
  if (one.node == nullptr && !CheckItems(key, several, faults_)) return;
  spec_.objectives.clear();
  if (one.node != nullptr) {
    ReadObjective(one);
  } else if (several.node->items.empty()) {
    faults_.AtValue(several, "is empty; write a list such as " + key.example);
  } else {
    for (size_t i = 0; i < several.node->items.size(); ++i) ReadObjective(Item(several, i));
  }
  auto& targets = spec_.stop.targets;
  while (!targets.empty() && !targets.back()) targets.pop_back();
}

void SpecReader::ReadObjective(const Spot& spot) {
  Objective objective;
  const Fields fields = ReadKeys(spot, objective, faults_);
  const std::string& name = objective.metric;
  CheckName(fields.spot("name"), name, faults_);
  if (!name.empty() && std::ranges::count(spec_.objectives, name, &Objective::metric) > 0)
    faults_.AtValue(fields.spot("name"), name + " is listed twice; remove one of them");
  spec_.objectives.push_back(std::move(objective));
  auto& target = spec_.stop.targets.emplace_back();
  if (const Value* given = fields.Find("target")) target = std::get<double>(*given);
}

void SpecReader::ReadGpus() {
  const Fields& resources = section("resources");
  const Value* gpus = resources.Find("gpus_per_worker");
  if (gpus == nullptr || SetGpus(*gpus, spec_.gang)) return;
  faults_.AtValue(resources.spot("gpus_per_worker"),
                  FormatValue(*gpus) +
                      " is not a valid number of GPUs; write a whole number, or a share of one GPU "
                      "from 0.01 to 0.99");
}

// The name determines the other keys, so it is read first. If it is faulty, the others are not
// checked.
Fields SpecReader::ReadAlgorithm(const std::string& name) {
  const Spot& spot = file().spot(name);
  Section keys = SectionNamed(name);
  const size_t common = keys.keys.size();
  if (algorithms_ == nullptr) {
    if (spot.node != nullptr) {
      for (const MapEntry& entry : spot.node->entries) {
        if (keys.Find(entry.key) == nullptr)
          keys.keys.push_back({.name = entry.key, .type = KeyType::kValue});
      }
    }
  } else {
    const MapEntry* entry = spot.node == nullptr ? nullptr : spot.node->Find("name");
    Node name_only{.kind = Node::Kind::kMap, .mark = spot.mark};
    if (entry != nullptr) name_only.entries.push_back(*entry);
    const size_t before = faults_.count();
    Fields fields = ReadSection(AlgorithmKeys(*algorithms_, name),
                                {&name_only, spot.place, spot.mark}, faults_);
    if (faults_.count() != before) return fields;
    keys = AlgorithmKeys(*algorithms_, name, fields.Get<std::string>("name"));
  }
  for (size_t i = common; i < keys.keys.size(); ++i) options_[name].push_back(keys.keys[i].name);
  return ReadSection(keys, spot, faults_);
}

void SpecReader::ReadOptions(const std::string& name, AlgorithmSpec& algorithm) {
  for (const std::string& option : options_[name]) {
    if (const Value* value = section(name).Find(option)) algorithm.options[option] = *value;
  }
}

}  // namespace attune::sweepfile
