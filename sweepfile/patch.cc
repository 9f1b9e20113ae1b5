#include <algorithm>
#include <utility>

#include "sweepfile/codec.h"
#include "sweepfile/parse_document.h"
#include "sweepfile/reader.h"

namespace attune::sweepfile {
namespace {

// JSON Merge Patch (RFC 7396): maps are merged, null removes, anything else replaces. What comes
// from the patch keeps its place there.
void Merge(Node& into, Node patch) {
  if (patch.kind != Node::Kind::kMap) {
    into = std::move(patch);
    return;
  }
  if (into.kind != Node::Kind::kMap) into = {.kind = Node::Kind::kMap, .mark = patch.mark};
  for (MapEntry& entry : patch.entries) {
    const auto known = std::ranges::find(into.entries, entry.key, &MapEntry::key);
    if (entry.value.kind == Node::Kind::kNull) {
      if (known != into.entries.end()) into.entries.erase(known);
    } else if (known == into.entries.end()) {
      Node value;
      Merge(value, std::move(entry.value));
      into.entries.push_back({entry.key, entry.mark, std::move(value)});
    } else {
      known->mark = entry.mark;
      Merge(known->value, std::move(entry.value));
    }
  }
}

}  // namespace

Parsed PatchSweep(const SweepSpec& spec, std::string_view patch, const ParseOptions& options) {
  Document changes = ReadDocument(patch);
  Parsed parsed;
  parsed.faults = std::move(changes.faults);
  Faults faults(parsed.faults);
  if (parsed.faults.empty() && (!changes.root || changes.root->kind != Node::Kind::kMap))
    faults.Add({}, {}, "expected a map of what changes, such as {stop: {max_trials: 40}}");
  if (!parsed.faults.empty()) return parsed;
  if (const MapEntry* points = changes.root->Find("initial_points")) {
    faults.Add(Place().Key("initial_points"), points->mark,
               "cannot change once the sweep has begun; enqueue trials instead");
    return parsed;
  }
  // Points that were tried need not lie in the ranges of now.
  Json json = ToJson(spec);
  json.erase("initial_points");
  Document whole = ReadDocument(json.dump());
  if (!whole.root || !whole.faults.empty()) {
    faults.Add({}, {}, "the sweep file with every default is too long to be edited");
    return parsed;
  }
  Merge(*whole.root, *std::move(changes.root));
  parsed = ParseDocument(std::move(whole), options);
  if (parsed.spec) parsed.spec->initial_points = spec.initial_points;
  return parsed;
}

}  // namespace attune::sweepfile
