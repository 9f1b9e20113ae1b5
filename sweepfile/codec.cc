#include "sweepfile/codec.h"

#include <cmath>
#include <limits>
#include <utility>

#include "base/result.h"
#include "sweepfile/document.h"
#include "sweepfile/keys.h"
#include "sweepfile/reader.h"
#include "sweepfile/scalar.h"
#include "sweepfile/spec_reader.h"

namespace attune::sweepfile {
namespace {

// An error stays valid UTF-8 even if it quotes invalid text.
constexpr auto kReplaceInvalid = Json::error_handler_t::replace;

Error Corrupt(const std::string& message) { return {ErrorCode::kCorrupt, message}; }

Json ValuesToJson(const std::vector<Value>& values) {
  Json json = Json::array();
  for (const Value& value : values) json.push_back(ToJson(value));
  return json;
}

std::string ScaleName(Scale scale) { return scale == Scale::kLog ? "log" : "linear"; }

Json DomainToJson(const Domain& domain) {
  struct {
    Json operator()(const FloatDomain& d) const {
      Json json = {
          {"type", "float"}, {"min", d.min}, {"max", d.max}, {"scale", ScaleName(d.scale)}};
      if (d.step) json["step"] = *d.step;
      return json;
    }
    Json operator()(const IntDomain& d) const {
      return {{"type", "int"},
              {"min", d.min},
              {"max", d.max},
              {"scale", ScaleName(d.scale)},
              {"step", d.step}};
    }
    Json operator()(const CategoricalDomain& d) const {
      return {{"values", ValuesToJson(d.values)}};
    }
    Json operator()(const ConstantDomain& d) const { return {{"value", ToJson(d.value)}}; }
  } to_json;
  return std::visit(to_json, domain);
}

Json ConditionToJson(const Condition& condition) {
  if (!condition.any_of.empty()) return ValuesToJson(condition.any_of);
  Json json = Json::object();
  if (condition.at_least) json["gte"] = *condition.at_least;
  if (condition.at_most) json["lte"] = *condition.at_most;
  return json;
}

Json SpaceToJson(const SearchSpace& space) {
  Json json = Json::object();
  for (const Parameter& parameter : space.parameters()) {
    Json one = DomainToJson(parameter.domain);
    if (parameter.patches) one = {{"patches", one["values"]}};
    for (const Condition& condition : parameter.when) {
      one["when"][condition.parent] = ConditionToJson(condition);
    }
    json[parameter.name] = std::move(one);
  }
  return json;
}

// ---- by the rows -----------------------------------------------------------------------------

// A member as JSON; null if it is absent.
template <ScalarMember T>
Json MemberToJson(const Key& key, const T& member) {
  const std::optional<Value> value = ToValue(member);
  if (!value) return nullptr;
  // A number below the smallest one means that the key is not given and has no default.
  const auto* integer = std::get_if<int64_t>(&*value);
  if (integer != nullptr && !key.fallback && !key.required && key.min &&
      static_cast<double>(*integer) < *key.min)
    return nullptr;
  const bool in_words = key.type == KeyType::kDuration || key.type == KeyType::kSize;
  return in_words ? Json(ValueText(key.type, *value)) : ToJson(*value);
}
Json MemberToJson(const Key&, const std::vector<std::string>& texts) { return texts; }
Json MemberToJson(const Key&, const std::vector<SweepId>& sweeps) {
  Json json = Json::array();
  for (const SweepId sweep : sweeps) json.push_back(ToString(sweep));
  return json;
}
Json MemberToJson(const Key&, const std::vector<std::pair<std::string, std::string>>& texts) {
  Json json = Json::object();
  for (const auto& [name, text] : texts) json[name] = text;
  return json;
}
Json MemberToJson(const Key&, const Requirements& required) { return ToJson(required); }
template <HasKeys T>
Json KeysToJson(const T& owner);
template <HasKeys T>
Json MemberToJson(const Key&, const std::optional<T>& section) {
  return section ? KeysToJson(*section) : Json();
}
template <HasKeys T>
Json MemberToJson(const Key& key, const std::vector<T>& items) {
  if (key.sparse && items.empty()) return {};
  Json json = IsEntry<T>() ? Json::object() : Json::array();
  for (const T& item : items) {
    if constexpr (IsEntry<T>()) {
      json[EntryNameOf(item)] = KeysToJson(item);
    } else {
      json.push_back(KeysToJson(item));
    }
  }
  return json;
}

void Add(const Key& key, std::string_view name, Json member, Json& map) {
  if (member.is_null() || (!key.needs.empty() && !map.contains(key.needs))) return;
  if (!key.replaces.empty()) map.erase(key.replaces);
  map[std::string(name)] = std::move(member);
}

template <HasKeys T>
Json KeysToJson(const T& owner) {
  Json json = Json::object();
  ForEachKey<T>([&](const auto& row) {
    Add(row.key, row.key.name, MemberToJson(row.key, row.FieldIn(owner)), json);
  });
  return json;
}

// ---- by hand ---------------------------------------------------------------------------------

void AddObjectives(const SweepSpec& spec, Json& json) {
  Json metrics = Json::array();
  for (size_t i = 0; i < spec.objectives.size(); ++i) {
    Json& metric = metrics.emplace_back(KeysToJson(spec.objectives[i]));
    if (i < spec.stop.targets.size() && spec.stop.targets[i])
      metric["target"] = *spec.stop.targets[i];
  }
  if (metrics.size() == 1) {
    json["metric"] = std::move(metrics.front());
  } else {
    json["metrics"] = std::move(metrics);
  }
}

void AddOptions(const AlgorithmSpec& algorithm, Json& json) {
  for (const auto& [name, value] : algorithm.options) json[name] = ToJson(value);
}

// Adds a key whose row is not a KeyRow.
void AddByHand(const Key& key, const SweepSpec& spec, Json& json) {
  if (key.name == "metrics") {
    AddObjectives(spec, json);
  } else if (key.name == "parameters") {
    json[key.name] = SpaceToJson(spec.space);
  } else if (key.name == "initial_points") {
    json[key.name] = Json::array();
    for (const Config& point : spec.initial_points) json[key.name].push_back(ToJson(point));
  } else if (key.name == "searcher") {
    AddOptions(spec.searcher, json[key.name]);
  } else if (key.name == "scheduler") {
    AddOptions(spec.scheduler, json[key.name]);
  } else if (key.name == "resources.gpus_per_worker") {
    const GangSpec& gang = spec.gang;
    json["resources"]["gpus_per_worker"] =
        gang.gpu_percent < 100 ? Json(GpusPerWorker(gang)) : Json(gang.per_worker.gpus);
  } else if (key.fallback) {
    json[key.name] = ToJson(*key.fallback);
  }
}

// The same tree as from parsing the JSON's text, but without places.
Node ToNode(const Json& json) {
  Node node;
  if (json.is_object()) {
    node.kind = Node::Kind::kMap;
    for (const auto& [key, member] : json.items())
      node.entries.push_back({key, {}, ToNode(member)});
  } else if (json.is_array()) {
    node.kind = Node::Kind::kList;
    for (const Json& item : json) node.items.push_back(ToNode(item));
  } else if (json.is_string()) {
    node = {.kind = Node::Kind::kScalar, .text = json.get<std::string>(), .quoted = true};
  } else if (!json.is_null()) {
    node = {.kind = Node::Kind::kScalar, .text = json.dump()};
  }
  return node;
}

}  // namespace

Json RealToJson(double value) {
  if (std::isfinite(value)) return value;
  return FormatReal(value);
}

Json ToJson(const Value& value) {
  if (const auto* real = std::get_if<double>(&value)) return RealToJson(*real);
  return std::visit([](const auto& held) { return Json(held); }, value);
}

Json ToJson(const Config& config) {
  Json json = Json::object();
  for (const auto& [name, value] : config.entries()) json[name] = ToJson(value);
  return json;
}

Json ToJson(const Metrics& metrics) {
  Json json = Json::object();
  for (const auto& [name, value] : metrics) json[name] = RealToJson(value);
  return json;
}

Result<double> RealFromJson(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-inf") return -std::numeric_limits<double>::infinity();
  }
  return Corrupt("expected a number, found " + json.dump(-1, ' ', false, kReplaceInvalid));
}

Result<Value> ValueFromJson(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value(json.get<bool>());
    case Json::value_t::number_integer:
      return Value(json.get<int64_t>());
    case Json::value_t::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) break;
      return Value(json.get<int64_t>());
    case Json::value_t::number_float:
      return Value(json.get<double>());
    case Json::value_t::string:
      return Value(json.get<std::string>());
    default:
      break;
  }
  return Corrupt("expected a boolean, a number or text, found " +
                 json.dump(-1, ' ', false, kReplaceInvalid));
}

Result<Config> ConfigFromJson(const Json& json) {
  if (!json.is_object()) return Corrupt("expected a configuration as a JSON object");
  Config config;
  for (const auto& [name, member] : json.items()) {
    Result<Value> value = ValueFromJson(member);
    if (!value.ok()) return Corrupt(name + ": " + value.error().message);
    config.Set(name, *std::move(value));
  }
  return config;
}

Result<Metrics> MetricsFromJson(const Json& json) {
  if (!json.is_object()) return Corrupt("expected metrics as a JSON object");
  Metrics metrics;
  for (const auto& [name, member] : json.items()) {
    const Result<double> value = RealFromJson(member);
    if (!value.ok()) return Corrupt(name + ": " + value.error().message);
    metrics[name] = *value;
  }
  return metrics;
}

Json ToJson(const SweepSpec& spec) {
  Json json = Json::object();
  ForEachRow<SweepSpec>([&]<RowKind kind, auto... path>(const Row<kind, path...>& row) {
    if (row.key.of_program && spec.External()) return;
    if constexpr (kind == RowKind::kKey) {
      Json member = MemberToJson(row.key, row.FieldIn(spec));
      const KeyPlace place = PlaceOf(row.key);
      if (member.is_null()) return;
      Add(row.key, place.name, std::move(member),
          place.section.empty() ? json : json[std::string(place.section)]);
    } else {
      AddByHand(row.key, spec, json);
    }
  });
  return json;
}

Json ToJson(const Requirements& required) {
  Json json = Json::object();
  for (const auto& [name, values] : required)
    json[name] = values.size() == 1 ? Json(*values.begin()) : Json(values);
  return json;
}

Result<SweepSpec> SpecFromJson(const Json& json) {
  if (!json.is_object()) return Corrupt("spec of a sweep: expected a JSON object");
  const Node root = ToNode(json);
  std::vector<Fault> found;
  Faults faults(found);
  SpecReader reader(root, nullptr, faults);
  if (!found.empty())
    return Corrupt("spec of a sweep: " + found.front().path + ": " + Sentence(found.front()));
  // The space may have been edited since, so the points are not checked against it.
  const auto points = json.find("initial_points");
  if (points != json.end() && !points->is_array())
    return Corrupt("spec of a sweep: initial_points: expected a list");
  for (size_t i = 0; points != json.end() && i < points->size(); ++i) {
    Result<Config> config = ConfigFromJson((*points)[i]);
    if (!config.ok()) return Corrupt("spec of a sweep: initial_points: " + config.error().message);
    reader.spec().initial_points.push_back(*std::move(config));
  }
  return std::move(reader.spec());
}

}  // namespace attune::sweepfile
