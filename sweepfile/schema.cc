#include "sweepfile/schema.h"

#include <algorithm>
#include <cmath>

#include "sweepfile/keys.h"
#include "sweepfile/scalar.h"

namespace attune::sweepfile {
namespace {

constexpr const char* kDurationPattern = R"(^[0-9.]+(e[-+]?[0-9]+)? *(ms|s|m|h|d)$)";
constexpr const char* kSizePattern = R"(^[0-9.]+ *(B|[KMGT]iB|[kMGT]B)$)";

// A text may be written without quotes, and then an editor may read it as a number.
const Json kAnyScalar = {"string", "number", "boolean"};

Json TypeSchema(const Key& key) {
  switch (key.type) {
    case KeyType::kText:
      return {{"type", "string"}};
    case KeyType::kInteger:
      return {{"type", "integer"}};
    case KeyType::kReal:
    case KeyType::kNumber:
      return {{"type", "number"}};
    case KeyType::kBoolean:
      return {{"type", "boolean"}};
    case KeyType::kDuration:
      return {{"type", "string"}, {"pattern", kDurationPattern}};
    case KeyType::kSize:
      return {{"type", "string"}, {"pattern", kSizePattern}};
    case KeyType::kValue:
      return {{"type", kAnyScalar}};
    case KeyType::kTexts:
      return {{"type", "array"}, {"items", {{"type", kAnyScalar}}}};
    case KeyType::kValues:
      return {{"type", "array"}, {"items", {{"type", kAnyScalar}}}, {"minItems", 1}};
    case KeyType::kTextMap:
      return {{"type", "object"}, {"additionalProperties", {{"type", kAnyScalar}}}};
    case KeyType::kChoices:
      return {{"type", "object"},
              {"additionalProperties",
               {{"anyOf",
                 {{{"type", kAnyScalar}},
                  {{"type", "array"}, {"items", {{"type", kAnyScalar}}}, {"minItems", 1}}}}}}};
    case KeyType::kConfigs:
      return {{"type", "array"},
              {"items", {{"type", "object"}, {"additionalProperties", {{"type", kAnyScalar}}}}}};
    case KeyType::kSections:
      return {{"type", "array"}, {"items", {{"type", "object"}}}};
    case KeyType::kSection:
    case KeyType::kMap:
      return {{"type", "object"}};
  }
  return Json::object();
}

// Integers get no point, because editors would show 1.0.
Json Bound(double bound) {
  if (bound == std::floor(bound) && std::abs(bound) < 0x1p53) return static_cast<int64_t>(bound);
  return bound;
}

Json SectionSchema(const Section& section);

Json KeySchema(const Key& key) {
  Json schema = TypeSchema(key);
  if (!key.element.empty()) {
    const Json element = SectionSchema(SectionNamed(key.element));
    if (key.type == KeyType::kSections) {
      schema["items"] = element;
    } else if (key.element.ends_with(".NAME")) {
      schema["additionalProperties"] = element;
    } else if (key.scalar.empty()) {
      return element;
    } else {
      return {{"description", key.help}, {"anyOf", {{{"type", "string"}}, element}}};
    }
  }
  if (key.most > 0) schema[schema["type"] == "array" ? "maxItems" : "maxProperties"] = key.most;
  schema["description"] = key.help;
  if (!key.one_of.empty()) {
    schema["enum"] = key.one_of;
    for (const auto& [synonym, word] : key.synonyms) {
      if (schema["enum"].end() ==
          std::find(schema["enum"].begin(), schema["enum"].end(), synonym)) {
        schema["enum"].push_back(synonym);
      }
    }
  }
  const bool number =
      key.type == KeyType::kInteger || key.type == KeyType::kReal || key.type == KeyType::kNumber;
  if (key.min && number) schema["minimum"] = Bound(*key.min);
  if (key.max && number) schema["maximum"] = Bound(*key.max);
  if (key.fallback) {
    const bool in_words = key.type == KeyType::kDuration || key.type == KeyType::kSize;
    schema["default"] = in_words ? Json(ValueText(key.type, *key.fallback)) : ToJson(*key.fallback);
  }
  return schema;
}

Json SectionSchema(const Section& section) {
  Json schema = {
      {"type", "object"}, {"description", section.help}, {"additionalProperties", false}};
  schema["properties"] = Json::object();
  for (const Key& key : section.keys) {
    schema["properties"][key.name] = KeySchema(key);
    if (!key.alias.empty()) {
      schema["properties"][key.alias] = KeySchema(key);
      schema["properties"][key.alias]["description"] = "Another name of " + key.name;
    }
    if (!key.required) continue;
    if (key.alias.empty()) {
      schema["required"].push_back(key.name);
    } else {
      schema["oneOf"] = {{{"required", Json::array({key.name})}},
                         {{"required", Json::array({key.alias})}}};
    }
  }
  for (const std::string& key : section.any_of)
    schema["anyOf"].push_back({{"required", Json::array({key})}});
  return schema;
}

Json ParametersSchema() {
  Json when = {{"type", "object"}, {"additionalProperties", Json::object()}};
  when["additionalProperties"]["anyOf"] = {
      {{"type", kAnyScalar}},
      {{"type", "array"}, {"items", {{"type", kAnyScalar}}}, {"minItems", 1}},
      SectionSchema(BoundsKeys())};
  when["description"] = ParameterKeys().Find("when")->help;

  Json parameter = SectionSchema(ParameterKeys());
  parameter["properties"]["when"] = when;
  parameter["oneOf"] = {{{"required", {"min", "max"}}},
                        {{"required", Json::array({"values"})}},
                        {{"required", Json::array({"value"})}}};
  return {{"type", "object"},
          {"description", FileKeys().Find("parameters")->help},
          {"maxProperties", kMaxParameters},
          {"additionalProperties", parameter}};
}

// One alternative for each algorithm, selected by `name`. The default algorithm may omit the name.
Json AlgorithmSchema(const Algorithms& algorithms, std::string_view section) {
  const Section common = AlgorithmKeys(algorithms, section);
  Json schema = {{"type", "object"}, {"description", common.help}, {"oneOf", Json::array()}};
  const Key& key = *common.Find("name");
  for (const std::string& name : key.one_of) {
    const Section keys = AlgorithmKeys(algorithms, section, name);
    Json alternative = SectionSchema(keys);
    alternative["properties"]["name"] = {{"const", name}, {"description", keys.help}};
    if (Value(name) != key.fallback) alternative["required"].push_back("name");
    schema["oneOf"].push_back(std::move(alternative));
  }
  return schema;
}

std::string Cell(std::string text) {
  for (size_t at = text.find('|'); at != text.npos; at = text.find('|', at + 2)) {
    text.insert(at, 1, '\\');
  }
  return text;
}

std::string Code(const std::string& text) { return "`" + text + "`"; }

std::string TypeCell(const Key& key) {
  std::string text(Name(key.type));
  if (!key.one_of.empty()) {
    text.clear();
    for (const std::string& word : key.one_of) text += (text.empty() ? "" : ", ") + Code(word);
  }
  if (key.type == KeyType::kDuration && key.min) {
    text += " ≥ " + FormatDuration(Seconds{*key.min});
  }
  if (key.type != KeyType::kInteger && key.type != KeyType::kReal && key.type != KeyType::kNumber)
    return text;
  constexpr double kWorthSaying = 2147483647;
  if (key.min) text += " ≥ " + Bound(*key.min).dump();
  if (key.max && *key.max < kWorthSaying) text += ", ≤ " + Bound(*key.max).dump();
  return text;
}

std::string DefaultCell(const Key& key) {
  if (key.required) return "**required**";
  if (key.fallback) return Code(ValueText(key.type, *key.fallback));
  return key.type == KeyType::kSection ? "see below" : key.fallback_words;
}

// The end of a description: "; `minimize`, `minimise` mean `min`".
std::string SynonymsText(const Key& key) {
  std::string text;
  for (const std::string& word : key.one_of) {
    std::string others;
    for (const auto& [synonym, meant] : key.synonyms) {
      const bool known = std::ranges::find(key.one_of, synonym) != key.one_of.end();
      if (meant == word && !known) others += (others.empty() ? "" : ", ") + Code(synonym);
    }
    if (!others.empty()) text += "; " + others + " mean " + Code(word);
  }
  return text;
}

std::string Rows(const Section& section, const std::vector<std::string>& left_out = {}) {
  std::string rows = "| key | type | default | meaning |\n| --- | --- | --- | --- |\n";
  for (const Key& key : section.keys) {
    if (std::find(left_out.begin(), left_out.end(), key.name) != left_out.end()) continue;
    std::string help = key.help;
    if (!key.alias.empty()) help += "; " + Code(key.alias) + " is another name of this key";
    help += SynonymsText(key);
    rows += "| " + Code(key.name) + " | " + Cell(TypeCell(key)) + " | " + Cell(DefaultCell(key)) +
            " | " + Cell(help) + " |\n";
  }
  return rows;
}

std::string AlgorithmTables(const Algorithms& algorithms, const Section& common) {
  std::string text;
  const Key& key = *common.Find("name");
  for (const std::string& name : key.one_of) {
    const bool synonym =
        std::ranges::any_of(key.synonyms, [&](const auto& pair) { return pair.first == name; });
    if (synonym) continue;
    const Section section = AlgorithmKeys(algorithms, common.name, name);
    text += "\n`" + common.name + ": {name: " + name + "}` — " + section.help + ".";
    if (section.keys.size() > common.keys.size()) {
      text += "\n\n" + Rows(section, common.Names());
    } else {
      text += " No further keys.\n";
    }
  }
  return text;
}

}  // namespace

Json SweepSchema(const Algorithms& algorithms) {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "Attune sweep file"}};
  schema.update(SectionSchema(FileKeys()));
  Json& properties = schema["properties"];
  properties["metrics"]["minItems"] = 1;
  schema["oneOf"] = {{{"required", Json::array({"metric"})}},
                     {{"required", Json::array({"metrics"})}}};
  properties["parameters"] = ParametersSchema();
  for (const char* section : {"searcher", "scheduler"})
    properties[section] = AlgorithmSchema(algorithms, section);
  return schema;
}

std::string KeyReference(const Algorithms& algorithms) {
  std::string text;
  for (const Section& section : AllSections(algorithms)) {
    text += section.name.empty() ? "### The file\n\n"
                                 : "### `" + section.name + "`\n\n" + section.help + ".\n\n";
    text += Rows(section);
    if (section.name == "searcher" || section.name == "scheduler")
      text += AlgorithmTables(algorithms, section);
    text += "\n";
  }
  return text;
}

}  // namespace attune::sweepfile
