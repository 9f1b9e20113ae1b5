#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "core/log/key.h"
#include "core/log/sweep_keys.h"

// The sections of a sweep file: the rows of core/log/sweep_keys.h for each map, plus parameters and
// the options of algorithms. The parser's checks and suggestions, the JSON schema and the tables of
// docs/reference/sweep-file.md derive from them.
namespace attune::sweepfile {

// The keys of one map of the file. `name` is its path, with NAME in place of any name:
// "" (the file), metric, parameters.NAME, parameters.NAME.when.NAME, constraints.NAME.
struct Section {
  std::string name;
  std::string help;
  std::vector<Key> keys;            // with names relative to this map
  std::vector<std::string> any_of;  // at least one of these must be given; empty: no such rule

  const Key* Find(std::string_view key) const;  // by name or alias; null if unknown
  std::vector<std::string> Names() const;
};

constexpr size_t kMaxParameters = 1000;
constexpr size_t kMaxListedValues = 1000;  // of one parameter, or of one `when`
constexpr size_t kMaxNameChars = 128;      // of a sweep, a parameter, a metric

// The name of a key in SweepSpec's rows, split into section and name: stop and max_trials.
struct KeyPlace {
  std::string_view section;
  std::string_view name;
};
KeyPlace PlaceOf(const Key& key);

const Section& SectionNamed(std::string_view name);  // REQUIRES: there is one
const Section& FileKeys();
const Section& ParameterKeys();
const Section& BoundsKeys();  // parameters.NAME.when.NAME, if it is a map

template <HasKeys T>
Section MakeSection() {
  const auto& table = Keys(std::type_identity<T>());
  Section section{.name = table.section, .help = table.help, .keys = {}, .any_of = table.any_of};
  ForEachRow<T>([&]<RowKind kind, auto... path>(const Row<kind, path...>& row) {
    if (kind == RowKind::kKey || kind == RowKind::kByHand) section.keys.push_back(row.key);
  });
  return section;
}

// The keys of a struct that is an item, an entry or a section: Objective, Threshold, Plateau.
template <HasKeys T>
const Section& ElementKeys() {
  static const Section section = MakeSection<T>();
  return section;
}

// The keys of the section `searcher` or `scheduler`: those of every algorithm, or in addition the
// options of the algorithm `name`. An unknown name has no options.
Section AlgorithmKeys(const Algorithms& algorithms, std::string_view section);
Section AlgorithmKeys(const Algorithms& algorithms, std::string_view section,
                      std::string_view name);

// Every section except those of single algorithms, in the order of the reference.
std::vector<Section> AllSections(const Algorithms& algorithms);

// The word for messages and the reference: integer, duration, text, …
std::string_view Name(KeyType type);

// A default or a bound as a user writes it in the file.
std::string ValueText(KeyType type, const Value& value);

}  // namespace attune::sweepfile
