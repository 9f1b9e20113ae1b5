#include "sweepfile/space.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/result.h"
#include "core/space/domain.h"
#include "core/space/draw.h"
#include "sweepfile/keys.h"
#include "sweepfile/members.h"
#include "sweepfile/scalar.h"

namespace attune::sweepfile {
namespace {

// Whether the name is valid in --NAME=… and ${param.NAME}: a letter or _, then letters, digits, _,
// - and dots.
bool IsParameterName(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto inner = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= kMaxNameChars && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), inner);
}

// What the user may list in place of a value that is not a scalar; empty if it is a scalar.
std::string RemedyFor(const Node& node) {
  if (node.kind == Node::Kind::kNull)
    return "; write a text such as none, or add `when` to a parameter that may be absent";
  if (node.kind == Node::Kind::kScalar) return "";
  return "; write a text, or a number that the program maps to the value";
}

// Reads one parameter's domain from its fields.
class DomainReader {
 public:
  DomainReader(const Spot& spot, const Fields& fields, Faults& faults)
      : spot_(spot), fields_(fields), faults_(faults) {}

  std::optional<Domain> Read() {
    const bool range = fields_.IsGiven("min") || fields_.IsGiven("max");
    const bool choice = fields_.IsGiven("values");
    const bool constant = fields_.IsGiven("value");
    const bool patches = fields_.IsGiven("patches");
    if (const int kinds = range + choice + constant + patches; kinds != 1) {
      faults_.Add(spot_.place, spot_.mark,
                  kinds == 0
                      ? "has no values; give min and max, or values, or value"
                      : "has more than one of: min and max, values, value, patches; keep one of "
                        "them");
      return std::nullopt;
    }
    if (range) return ReadRange();
    for (const char* key : {"scale", "step"}) {
      if (!fields_.IsGiven(key)) continue;
      faults_.Add(spot_.place.Key(key), fields_.spot(key).mark,
                  "only a range (min and max) has a " + std::string(key) + "; remove it");
    }
    if (patches) return ReadPatches();
    return choice ? ReadChoice() : ReadConstant();
  }

 private:
  std::optional<Domain> ReadRange() {
    for (const char* key : {"min", "max"}) {
      if (fields_.IsGiven(key)) continue;
      faults_.Add(spot_.place.Key(key), spot_.mark, "missing: a range needs min and max");
      return std::nullopt;
    }
    const Value* min = fields_.Find("min");
    const Value* max = fields_.Find("max");
    const Value* step = fields_.Find("step");
    if (min == nullptr || max == nullptr) return std::nullopt;  // already a fault

    const Scale scale = fields_.Get<std::string>("scale") == "log" ? Scale::kLog : Scale::kLinear;
    std::string type = fields_.Get<std::string>("type");
    if (type.empty()) {
      const auto whole = [](const Value* v) { return !v || std::holds_alternative<int64_t>(*v); };
      type = whole(min) && whole(max) && whole(step) ? "int" : "float";
    }
    if (type == "float") {
      FloatDomain domain{.min = *AsNumber(*min), .max = *AsNumber(*max), .scale = scale};
      if (step != nullptr) domain.step = AsNumber(*step);
      return domain;
    }
    const auto low = Integer("min");
    const auto high = Integer("max");
    const auto stride = step == nullptr ? std::optional<int64_t>(1) : Integer("step");
    if (!low || !high || !stride) return std::nullopt;
    return IntDomain{.min = *low, .max = *high, .scale = scale, .step = *stride};
  }

  std::optional<Domain> ReadChoice() {
    const Spot& list = fields_.spot("values");
    if (!CheckItems(*ParameterKeys().Find("values"), list, faults_)) return std::nullopt;
    CategoricalDomain domain;
    bool complete = true;
    for (size_t i = 0; i < list.node->items.size(); ++i) {
      const std::optional<Value> value = Typed(Item(list, i));
      complete = complete && value;
      if (value) domain.values.push_back(*value);
    }
    if (!complete) return std::nullopt;

    // If one number has a point, all numbers become reals, so that [0, 0.1] has one type.
    const bool numbers = std::all_of(domain.values.begin(), domain.values.end(),
                                     [](const Value& v) { return AsNumber(v).has_value(); });
    const bool reals = std::any_of(domain.values.begin(), domain.values.end(), [](const Value& v) {
      return std::holds_alternative<double>(v);
    });
    if (numbers && reals) {
      for (Value& value : domain.values) value = *AsNumber(value);
    }
    return domain;
  }

  std::optional<Domain> ReadPatches() {
    const Spot& list = fields_.spot("patches");
    std::vector<std::string> patches;
    ReadItems(*ParameterKeys().Find("patches"), list, patches, faults_);
    if (patches.empty() || patches.size() != list.node->items.size()) {
      if (patches.empty() && list.node->items.empty())
        faults_.AtValue(list, "is empty; list at least one patch");
      return std::nullopt;
    }
    CategoricalDomain domain;
    for (size_t i = 0; i < patches.size(); ++i) {
      const std::filesystem::path path = std::filesystem::path(patches[i]).lexically_normal();
      if (path.empty() || path.is_absolute() || *path.begin() == "..")
        faults_.AtValue(Item(list, i),
                        "is outside of the code; write a path that starts at the root of the code");
      domain.values.emplace_back(path.string());
    }
    return domain;
  }

  std::optional<Domain> ReadConstant() {
    std::optional<Value> value = Typed(fields_.spot("value"));
    if (!value) return std::nullopt;
    return ConstantDomain{std::move(*value)};
  }

  // A listed value, converted as `type` says.
  std::optional<Value> Typed(const Spot& spot) {
    const std::string type = fields_.Get<std::string>("type");
    Result<Value> value = [&]() -> Result<Value> {
      if (type.empty()) return ReadValue(*spot.node);
      return type == "float" ? AsValue(ReadReal(*spot.node)) : AsValue(ReadInteger(*spot.node));
    }();
    if (value.ok()) return *std::move(value);
    // ReadSection has already reported a faulty constant without a type.
    if (!type.empty() || spot.place.Path() != fields_.spot("value").place.Path()) {
      faults_.AtValue(spot, value.error().message + RemedyFor(*spot.node));
    }
    return std::nullopt;
  }

  std::optional<int64_t> Integer(const char* key) {
    const Result<int64_t> integer = ReadInteger(*fields_.spot(key).node);
    if (integer.ok()) return *integer;
    faults_.AtValue(fields_.spot(key), integer.error().message + ", because type is int");
    return std::nullopt;
  }

  const Spot& spot_;
  const Fields& fields_;
  Faults& faults_;
};

// The listed values of a domain, for fast lookup.
SettingSet ListedIn(const Domain& domain) {
  if (const auto* categorical = std::get_if<CategoricalDomain>(&domain))
    return SettingSet(categorical->values);
  const auto* constant = std::get_if<ConstantDomain>(&domain);
  return constant == nullptr ? SettingSet() : SettingSet({constant->value});
}

// A scalar with the type of the domain's values: 1 is the text "1" if the domain lists that text
// and not the number 1. `listed` is ListedIn(domain).
Result<Value> ReadFor(const Domain& domain, const SettingSet& listed, const Node& node) {
  if (std::holds_alternative<FloatDomain>(domain)) return AsValue(ReadReal(node));
  if (std::holds_alternative<IntDomain>(domain)) return AsValue(ReadInteger(node));
  const Result<Value> value = ReadValue(node);
  if (value.ok() && listed.Contains(*value)) return value;
  const bool text = node.kind == Node::Kind::kScalar && listed.Contains(node.text);
  return text ? Value(node.text) : value;
}

// A limit for the time to check initial points. Each parameter of a point is completed, and
// compared with the values that domains and conditions list.
constexpr size_t kWorkOfParameter = 100;  // completing a parameter takes as long as 100 comparisons
constexpr size_t kMaxPointsWork = kWorkOfParameter * kMaxNodes / 2;

size_t WorkOfPoint(const SearchSpace& space) {
  size_t work = 1;
  for (const Parameter& parameter : space.parameters()) {
    work += kWorkOfParameter;
    if (const auto* choice = std::get_if<CategoricalDomain>(&parameter.domain))
      work += choice->values.size();
    for (const Condition& condition : parameter.when) work += 1 + condition.any_of.size();
  }
  return work;
}

// The first entry of a map that contains parameters; null if the map is itself a parameter.
const MapEntry* Nested(const Node& map) {
  const MapEntry* first = nullptr;
  for (const MapEntry& entry : map.entries) {
    if (ParameterKeys().Find(entry.key) != nullptr) return nullptr;
    const bool names_one = entry.value.kind == Node::Kind::kMap && IsParameterName(entry.key);
    if (first == nullptr && names_one) first = &entry;
  }
  return first;
}

class SpaceReader {
 public:
  explicit SpaceReader(Faults& faults) : faults_(faults) {}

  std::optional<SearchSpace> Read(const Spot& parameters) {
    const size_t before = faults_.count();
    if (parameters.node->kind != Node::Kind::kMap) {
      faults_.AtValue(parameters,
                      parameters.node->kind == Node::Kind::kNull
                          ? "is empty; add a parameter, or write {} for a single configuration"
                          : "expected a map of parameters, found " + Describe(*parameters.node));
      return std::nullopt;
    }
    if (parameters.node->entries.size() > kMaxParameters) {
      faults_.AtValue(parameters,
                      "more than " + std::to_string(kMaxParameters) + " parameters; remove some");
      return std::nullopt;
    }
    for (const MapEntry& entry : parameters.node->entries) {
      ReadParameter(Child(parameters, entry));
    }
    // Conditions are read after all domains, because a parent may come later in the file.
    if (faults_.count() == before) {
      for (const Parameter& parameter : parameters_)
        parents_[parameter.name].domain = &parameter.domain;
      for (size_t i = 0; i < parameters_.size(); ++i) ReadWhen(parameters_[i], when_[i]);
    }
    if (faults_.count() != before) return std::nullopt;
    for (const SpaceFault& fault : SearchSpace::Check(parameters_)) Tell(parameters, fault);
    if (faults_.count() != before) return std::nullopt;
    return SearchSpace(std::move(parameters_));
  }

 private:
  // A parameter that conditions may name.
  struct Parent {
    const Domain* domain = nullptr;
    std::optional<SettingSet> listed;  // ListedIn(*domain), once a condition has named it
  };

  void ReadParameter(const Spot& spot) {
    const std::string& name = std::get<std::string>(spot.place.parts().back());
    if (!IsParameterName(name)) {
      faults_.Add(spot.place, spot.mark,
                  "is not a valid name of a parameter; begin with a letter or _, then use letters, "
                  "digits, _, - and ., at most " +
                      std::to_string(kMaxNameChars) + " characters");
    }
    if (spot.node->kind != Node::Kind::kMap) {
      std::string message =
          "expected a map such as {min: 0.1, max: 1}, found " + Describe(*spot.node);
      if (spot.node->kind == Node::Kind::kScalar)
        message += "; for a constant, write {value: " + spot.node->text + "}";
      if (spot.node->kind == Node::Kind::kList) message += "; for a choice, write {values: […]}";
      faults_.AtValue(spot, message);
      return;
    }
    if (const MapEntry* nested = Nested(*spot.node)) {
      const std::string inner = name + "." + nested->key;
      faults_.AtValue(
          spot, "parameters cannot be nested; write " + inner + ": {…} as a separate parameter");
      return;
    }
    const Fields fields = ReadSection(ParameterKeys(), spot, faults_);
    std::optional<Domain> domain = DomainReader(spot, fields, faults_).Read();
    if (!domain) return;
    parameters_.push_back({.name = name,
                           .domain = *std::move(domain),
                           .when = {},
                           .patches = fields.IsGiven("patches")});
    when_.push_back(fields.spot("when"));
  }

  void ReadWhen(Parameter& parameter, const Spot& when) {
    if (!CheckItems(*ParameterKeys().Find("when"), when, faults_)) return;
    for (const MapEntry& entry : when.node->entries) {
      const auto parent = parents_.find(entry.key);
      if (parent == parents_.end()) {
        faults_.AddMisspelt(when.place.Key(entry.key), entry.mark, "unknown parameter", entry.key,
                            [&] { return NamesOf(parameters_); });
        continue;
      }
      ReadCondition(parameter, parent->second, Child(when, entry));
    }
  }

  void ReadCondition(Parameter& parameter, Parent& parent, const Spot& spot) {
    if (!parent.listed) parent.listed = ListedIn(*parent.domain);

    Condition condition{.parent = std::get<std::string>(spot.place.parts().back())};
    if (spot.node->kind == Node::Kind::kMap) {
      const Fields bounds = ReadSection(BoundsKeys(), spot, faults_);
      if (const Value* low = bounds.Find("gte")) condition.at_least = std::get<double>(*low);
      if (const Value* high = bounds.Find("lte")) condition.at_most = std::get<double>(*high);
    } else if (spot.node->kind == Node::Kind::kList) {
      if (spot.node->items.empty()) faults_.AtValue(spot, "is empty; list at least one value");
      if (spot.node->items.size() > kMaxListedValues) {
        faults_.AtValue(
            spot, "lists more than " + std::to_string(kMaxListedValues) + " values; remove some");
        return;
      }
      for (size_t i = 0; i < spot.node->items.size(); ++i)
        AddValue(condition, ReadFor(*parent.domain, *parent.listed, spot.node->items[i]), spot, i);
    } else {
      AddValue(condition, ReadFor(*parent.domain, *parent.listed, *spot.node), spot, std::nullopt);
    }
    parameter.when.push_back(std::move(condition));
  }

  // `index`: in the list at `spot`.
  void AddValue(Condition& condition, const Result<Value>& value, const Spot& spot,
                std::optional<size_t> index) {
    if (value.ok()) {
      condition.any_of.push_back(*value);
    } else {
      faults_.AtValue(index ? Item(spot, *index) : spot, value.error().message);
    }
  }

  void Tell(const Spot& parameters, const SpaceFault& fault) {
    if (faults_.full()) return faults_.AddUnlisted();
    Place place = parameters.place;
    Place local;
    const auto parameter = std::ranges::find(parameters_, fault.parameter, &Parameter::name);
    const bool is_of_patches = parameter != parameters_.end() && parameter->patches;
    const bool is_list = fault.key == "values";
    for (const std::string& key :
         {fault.parameter, is_of_patches && is_list ? std::string("patches") : fault.key}) {
      if (key.empty()) continue;
      place = place.Key(key);
      local = local.Key(key);
    }
    const Mark mark = fault.parameter.empty() ? parameters.mark : Locate(*parameters.node, local);
    faults_.Add(place, mark, fault.message);
  }

  Faults& faults_;
  std::vector<Parameter> parameters_;
  std::vector<Spot> when_;                              // of each parameter
  std::map<std::string, Parent, std::less<>> parents_;  // by name; all parameters
};

}  // namespace

std::vector<std::string> NamesOf(const std::vector<Parameter>& parameters) {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters) names.push_back(parameter.name);
  return names;
}

std::optional<SearchSpace> ReadSpace(const Spot& parameters, Faults& faults) {
  if (parameters.node == nullptr) return std::nullopt;  // told as missing
  return SpaceReader(faults).Read(parameters);
}

std::optional<Config> ReadConfig(const Spot& spot, const SearchSpace& space, Faults& faults) {
  if (spot.node->kind != Node::Kind::kMap) {
    faults.AtValue(spot, "expected a map of parameters and values, found " + Describe(*spot.node));
    return std::nullopt;
  }
  const size_t before = faults.count();
  Config given;
  for (const MapEntry& entry : spot.node->entries) {
    const Spot value_spot = Child(spot, entry);
    const Parameter* parameter = space.Find(entry.key);
    if (parameter == nullptr) {
      faults.AddMisspelt(value_spot.place, entry.mark, "unknown parameter", entry.key,
                         [&] { return NamesOf(space.parameters()); });
      continue;
    }
    const Result<Value> value =
        ReadFor(parameter->domain, ListedIn(parameter->domain), entry.value);
    if (value.ok()) {
      given.Set(entry.key, *value);
    } else {
      faults.AtValue(value_spot, value.error().message);
    }
  }
  if (faults.count() != before) return std::nullopt;

  RandomStream any(0, TrialNumber(0), "initial_points");
  const Result<Config> config = Complete(space, given, any);
  if (config.ok()) return given;
  // The message begins with the parameter's name.
  const std::string& message = config.error().message;
  const size_t colon = message.find(": ");
  const std::string name = message.substr(0, colon);
  if (colon == message.npos || space.Find(name) == nullptr) {
    faults.AtValue(spot, message);
  } else {
    faults.Add(spot.place.Key(name), Locate(*spot.node, Place().Key(name)),
               message.substr(colon + 2));
  }
  return std::nullopt;
}

std::vector<Config> ReadInitialPoints(const Spot& points, const SearchSpace& space,
                                      Faults& faults) {
  std::vector<Config> configs;
  if (!CheckItems(*FileKeys().Find("initial_points"), points, faults)) return configs;
  const size_t most = kMaxPointsWork / WorkOfPoint(space);
  if (points.node->items.size() > most) {
    faults.AtValue(points, "has " + std::to_string(points.node->items.size()) +
                               " points; at most " + std::to_string(most) +
                               " are allowed for a space of this size");
    return configs;
  }
  for (size_t i = 0; i < points.node->items.size(); ++i) {
    std::optional<Config> config = ReadConfig(Item(points, i), space, faults);
    if (config) configs.push_back(*std::move(config));
  }
  return configs;
}

}  // namespace attune::sweepfile
