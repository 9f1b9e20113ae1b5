#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "sweepfile/codec.h"
#include "sweepfile/document.h"
#include "sweepfile/keys.h"
#include "sweepfile/reader.h"

namespace attune::sweepfile {
namespace {

// JSON Merge Patch (RFC 7396): maps are merged, null removes a key, and other values replace. Nodes
// from the patch keep their positions in it.
void Merge(Node& into, Node patch) {
  if (patch.kind != Node::Kind::kMap) {
    into = std::move(patch);
    return;
  }
  if (into.kind != Node::Kind::kMap) into = {.kind = Node::Kind::kMap, .mark = patch.mark};
  std::map<std::string_view, MapEntry*> known;
  for (MapEntry& entry : into.entries) known[entry.key] = &entry;
  std::set<std::string> removed;
  std::vector<MapEntry> added;
  for (MapEntry& entry : patch.entries) {
    const auto found = known.find(entry.key);
    if (entry.value.kind == Node::Kind::kNull) {
      removed.insert(entry.key);
    } else if (found == known.end()) {
      Node value;
      Merge(value, std::move(entry.value));
      added.push_back({entry.key, entry.mark, std::move(value)});
    } else {
      found->second->mark = entry.mark;
      Merge(found->second->value, std::move(entry.value));
    }
  }
  std::erase_if(into.entries, [&](const MapEntry& entry) { return removed.contains(entry.key); });
  std::ranges::move(added, std::back_inserter(into.entries));
}

// Removes the options that the new algorithm does not have.
void KeepOptionsOf(const Section& keys, Node& algorithm) {
  std::erase_if(algorithm.entries,
                [&](const MapEntry& entry) { return keys.Find(entry.key) == nullptr; });
}

// The name of the algorithm in this section; empty if none is given.
std::string NameIn(const Node& file, std::string_view section) {
  const MapEntry* algorithm = file.Find(section);
  const MapEntry* name = algorithm == nullptr ? nullptr : algorithm->value.Find("name");
  return name == nullptr ? "" : name->value.text;
}

void KeepOptions(const Node& patch, const Algorithms& algorithms, Node& into) {
  for (MapEntry& entry : into.entries) {
    const std::string name = NameIn(patch, entry.key);
    if (name.empty() || name == NameIn(into, entry.key)) continue;
    if (entry.key == "searcher" || entry.key == "scheduler")
      KeepOptionsOf(AlgorithmKeys(algorithms, entry.key, name), entry.value);
  }
}

void Erase(Node& map, std::string_view key) {
  std::erase_if(map.entries, [&](const MapEntry& entry) { return entry.key == key; });
}

// The complete file contains defaults that depend on the old plateau, such as the mode of its
// metric. They are removed if the patch changes what they depend on.
void ForgetPlateau(const Node& patch, Node& into) {
  const MapEntry* stop = patch.Find("stop");
  const MapEntry* plateau = stop == nullptr ? nullptr : stop->value.Find("plateau");
  const auto known = std::ranges::find(into.entries, "stop", &MapEntry::key);
  if (plateau == nullptr || known == into.entries.end()) return;
  const auto old = std::ranges::find(known->value.entries, "plateau", &MapEntry::key);
  if (old == known->value.entries.end()) return;
  const auto given = [&](std::string_view key) { return plateau->value.Find(key) != nullptr; };
  if (given("metric") && !given("mode")) Erase(old->value, "mode");
  if (given("std") && !given("min_delta")) Erase(old->value, "min_delta");
  if (given("min_delta") && !given("std")) Erase(old->value, "std");
}

// Sets a key, and creates the maps on the path to it.
void Set(Node& map, std::span<const std::string> path, const Node& value) {
  if (path.empty()) {
    map = value;
    return;
  }
  if (map.kind != Node::Kind::kMap) map = {.kind = Node::Kind::kMap};
  if (path.size() == 1 && value.kind == Node::Kind::kNull) return Erase(map, path.front());
  auto known = std::ranges::find(map.entries, path.front(), &MapEntry::key);
  if (known == map.entries.end())
    known = map.entries.insert(known, MapEntry{.key = path.front(), .mark = {}, .value = {}});
  Set(known->value, path.subspan(1), value);
}

}  // namespace

Parsed PatchSweep(const SweepSpec& spec, std::string_view patch, const ParseOptions& options) {
  Document changes = ReadDocument(patch);
  Parsed parsed;
  parsed.faults = std::move(changes.faults);
  Faults faults(parsed.faults, changes.unlisted);
  if (parsed.faults.empty() && (!changes.root || changes.root->kind != Node::Kind::kMap))
    faults.Add({}, {}, "expected a map of changes, such as {stop: {max_trials: 40}}");
  faults.Close();
  if (!parsed.faults.empty()) return parsed;
  if (const MapEntry* points = changes.root->Find("initial_points")) {
    faults.Add(Place().Key("initial_points"), points->mark,
               "cannot change after the sweep has started; enqueue trials instead");
    return parsed;
  }
  const MapEntry* name = changes.root->Find("name");
  if (name != nullptr && name->value.kind == Node::Kind::kNull) {
    faults.Add(
        Place().Key("name"), name->mark,
        "cannot be removed, because the server does not know the file's name; set another name");
    return parsed;
  }
  // Points that were tried may lie outside the current ranges.
  Json json = ToJson(spec);
  json.erase("initial_points");
  Document whole = ReadDocument(json.dump());
  if (!whole.root || !whole.faults.empty()) {
    faults.Add({}, {},
               "the sweep file with all defaults is too long to edit; create a new sweep instead");
    return parsed;
  }
  KeepOptions(*changes.root, *options.algorithms, *whole.root);
  ForgetPlateau(*changes.root, *whole.root);
  Merge(*whole.root, *std::move(changes.root));
  parsed = ParseDocument(std::move(whole), options);
  if (parsed.spec) parsed.spec->initial_points = spec.initial_points;
  return parsed;
}

Parsed ParseEdited(std::string_view text, std::span<const Setting> settings,
                   const ParseOptions& options) {
  Document whole = ReadDocument(text);
  if (!whole.root || !whole.faults.empty()) {
    Faults(whole.faults, whole.unlisted).Close();
    return {.spec = {}, .faults = std::move(whole.faults)};
  }
  Parsed parsed;
  Faults faults(parsed.faults);
  std::vector<Node> values;
  Node changes{.kind = Node::Kind::kMap};
  for (const Setting& setting : settings) {
    Document value = ReadDocument(setting.value);
    Place place;
    for (const std::string& key : setting.path) place = place.Key(key);
    for (const Fault& fault : value.faults) faults.Add(place, {}, fault.message);
    values.push_back(value.root.value_or(Node()));
    Set(changes, setting.path, values.back());
  }
  if (!parsed.faults.empty()) return parsed;
  KeepOptions(changes, *options.algorithms, *whole.root);
  ForgetPlateau(changes, *whole.root);
  for (size_t i = 0; i < settings.size(); ++i) Set(*whole.root, settings[i].path, values[i]);
  return ParseDocument(std::move(whole), options);
}

}  // namespace attune::sweepfile
