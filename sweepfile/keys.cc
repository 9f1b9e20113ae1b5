#include "sweepfile/keys.h"

#include <algorithm>

#include "base/check.h"
#include "sweepfile/scalar.h"

namespace attune::sweepfile {
namespace {

Key OptionKey(const Option& option) {
  constexpr KeyType kTypes[] = {KeyType::kBoolean, KeyType::kInteger, KeyType::kReal,
                                KeyType::kText};
  Key key{.name = option.name,
          .type = kTypes[option.fallback.index()],
          .help = option.help,
          .required = option.required,
          .min = option.min,
          .max = option.max,
          .one_of = option.one_of};
  if (!option.required) key.fallback = option.fallback;
  return key;
}

// First the file, then the sections that its keys name with a dot, then the sections of items and
// entries.
std::vector<Section> MakeSections() {
  Section all = MakeSection<SweepSpec>();
  std::vector<Section> sections{{.name = "", .help = all.help, .keys = {}, .any_of = {}}};
  for (const FileSection& section : kFileSections) {
    sections.push_back({.name = section.name, .help = section.help, .keys = {}, .any_of = {}});
    if (section.needed != nullptr) sections.back().any_of = {section.needed};
  }
  for (Key& key : all.keys) {
    const KeyPlace place = PlaceOf(key);
    Section& section = *std::ranges::find(sections, place.section, &Section::name);
    std::vector<Key>& file = sections.front().keys;
    if (section.keys.empty() && !section.name.empty())
      file.push_back({.name = section.name,
                      .type = KeyType::kSection,
                      .help = section.help,
                      .element = section.name,
                      .of_program = true});
    // A section is about the program if each of its keys is.
    if (!section.name.empty() && !key.of_program)
      std::ranges::find(file, section.name, &Key::name)->of_program = false;
    key.name = std::string(place.name);
    section.keys.push_back(std::move(key));
  }
  for (const Section* element :
       {&ElementKeys<CodeSpec>(), &ElementKeys<PatchedCode>(), &ElementKeys<EnvironmentSpec>(),
        &ElementKeys<DataSpec>(), &ElementKeys<Objective>(), &ElementKeys<Constraint>(),
        &ElementKeys<LogPolicy>(), &ElementKeys<Plateau>(), &ElementKeys<Threshold>(),
        &ParameterKeys(), &BoundsKeys()})
    sections.push_back(*element);
  return sections;
}

}  // namespace

const Key* Section::Find(std::string_view key) const {
  const auto found = std::find_if(keys.begin(), keys.end(), [key](const Key& known) {
    return known.name == key || (!known.alias.empty() && known.alias == key);
  });
  return found == keys.end() ? nullptr : &*found;
}

std::vector<std::string> Section::Names() const {
  std::vector<std::string> names;
  for (const Key& key : keys) names.push_back(key.name);
  return names;
}

KeyPlace PlaceOf(const Key& key) {
  const std::string_view path = key.name;
  const size_t point = path.find('.');
  if (point == path.npos) return {"", path};
  return {path.substr(0, point), path.substr(point + 1)};
}

const Section& SectionNamed(std::string_view name) {
  static const std::vector<Section> sections = MakeSections();
  const auto found = std::ranges::find(sections, name, &Section::name);
  ATTUNE_CHECK(found != sections.end());
  return *found;
}

const Section& FileKeys() { return SectionNamed(""); }

const Section& ParameterKeys() {
  static const Section section{
      .name = "parameters.NAME",
      .help =
          "One parameter: a range (`min` and `max`), a choice (`values`) or a constant "
          "(`value`)",
      .keys = {{.name = "min", .type = KeyType::kNumber, .help = "Smallest value"},
               {.name = "max", .type = KeyType::kNumber, .help = "Largest value"},
               {.name = "scale",
                .help = "Whether values are uniform in the range, or in its logarithm",
                .fallback = std::string("linear"),
                .one_of = {"linear", "log"}},
               {.name = "step",
                .type = KeyType::kNumber,
                .help = "The values are min, min + step, … up to max",
                .fallback_words = "1 for integers; none for floats"},
               {.name = "type",
                .help = "Whether numbers are integers or floats",
                .fallback_words = "`int` if min, max and step are all written as integers, else "
                                  "`float`",
                .one_of = {"float", "int"}},
               {.name = "values",
                .type = KeyType::kValues,
                .help = "The values to choose from",
                .most = kMaxListedValues,
                .items = "values"},
               {.name = "value", .type = KeyType::kValue, .help = "The only value"},
               {.name = "patches",
                .type = KeyType::kTexts,
                .help = "Patches of the code to choose from: files in the code, as `git diff` "
                        "writes them, or `none`",
                .most = kMaxPatchedCode,
                .items = "patches",
                .example = "[none, muon.diff]"},
               {.name = "when",
                .type = KeyType::kMap,
                .help = "Conditions on other parameters: a value, a list of values, or bounds. "
                        "Otherwise the parameter is absent",
                .fallback_words = "none",
                .example = "{optimizer: sgd}"}},
      .any_of = {}};
  return section;
}

const Section& BoundsKeys() {
  static const Section section{
      .name = "parameters.NAME.when.NAME",
      .help = "Bounds of another parameter; give one or both",
      .keys = {{.name = "gte", .type = KeyType::kReal, .help = "Smallest value"},
               {.name = "lte", .type = KeyType::kReal, .help = "Largest value"}},
      .any_of = {"gte", "lte"}};
  return section;
}

Section AlgorithmKeys(const Algorithms& algorithms, std::string_view name) {
  Section section = SectionNamed(name);
  section.help += "; further keys depend on `name`";
  const auto add = [&](const auto& entries) {
    for (const auto& entry : entries) section.keys.front().one_of.push_back(entry.name);
  };
  name == "searcher" ? add(algorithms.searchers()) : add(algorithms.schedulers());
  return section;
}

Section AlgorithmKeys(const Algorithms& algorithms, std::string_view section,
                      std::string_view name) {
  Section keys = AlgorithmKeys(algorithms, section);
  const auto add = [&](const auto* entry) {
    if (entry == nullptr) return;
    keys.help = entry->help;
    for (const Option& option : entry->options) {
      if (keys.Find(option.name) == nullptr) keys.keys.push_back(OptionKey(option));
    }
  };
  section == "searcher" ? add(algorithms.FindSearcher(name)) : add(algorithms.FindScheduler(name));
  return keys;
}

std::vector<Section> AllSections(const Algorithms& algorithms) {
  std::vector<Section> sections;
  for (const char* name :
       {"", "code", "code.patched[]", "environment", "data[]", "reports", "metric",
        "constraints.NAME", "parameters.NAME", "parameters.NAME.when.NAME", "searcher", "scheduler",
        "resources", "checkpoint", "failure", "failure.on_log[]", "stop", "stop.plateau",
        "stop.threshold.NAME"}) {
    const std::string_view section = name;
    const bool algorithm = section == "searcher" || section == "scheduler";
    sections.push_back(algorithm ? AlgorithmKeys(algorithms, section) : SectionNamed(section));
  }
  return sections;
}

std::string_view Name(KeyType type) {
  constexpr std::string_view kNames[] = {
      "text",          "integer",        "number",       "number",
      "true or false", "duration",       "size",         "value",
      "list of texts", "list of values", "map of texts", "map of texts or lists of texts",
      "map",           "list of maps",   "map",          "list of maps"};
  return kNames[static_cast<size_t>(type)];
}

std::string ValueText(KeyType type, const Value& value) {
  if (type == KeyType::kDuration) return FormatDuration(Seconds{std::get<double>(value)});
  if (type == KeyType::kSize) return FormatSize(std::get<int64_t>(value));
  return FormatValue(value);
}

}  // namespace attune::sweepfile
