#include "attune/config.h"

#include "attune/error.h"
#include "json/parse.h"

namespace attune::inline sdk {
namespace {

std::string Describe(const Config::Value& value) {
  struct Visitor {
    std::string operator()(bool v) const { return v ? "the boolean true" : "the boolean false"; }
    std::string operator()(std::int64_t v) const { return "the integer " + std::to_string(v); }
    std::string operator()(double v) const { return "the real " + nlohmann::json(v).dump(); }
    std::string operator()(const std::string& v) const { return "the text \"" + v + "\""; }
  };
  return std::visit(Visitor{}, value);
}

[[noreturn]] void ThrowWrongType(std::string_view name, const Config::Value& value,
                                 std::string_view expected) {
  throw Error("config." + std::string(name) + ": is " + Describe(value) + ", the program expects " +
              std::string(expected));
}

template <typename T>
const T& GetAs(std::string_view name, const Config::Value& value, std::string_view expected) {
  if (const T* held = std::get_if<T>(&value)) return *held;
  ThrowWrongType(name, value, expected);
}

double AsReal(std::string_view name, const Config::Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  return GetAs<double>(name, value, "a real number");
}

}  // namespace

bool Config::Has(std::string_view name) const { return Find(name) != nullptr; }

double Config::Real(std::string_view name) const { return AsReal(name, Get(name)); }

std::int64_t Config::Int(std::string_view name) const {
  return GetAs<std::int64_t>(name, Get(name), "an integer");
}

bool Config::Bool(std::string_view name) const { return GetAs<bool>(name, Get(name), "a boolean"); }

const std::string& Config::Text(std::string_view name) const {
  return GetAs<std::string>(name, Get(name), "a text");
}

double Config::RealOr(std::string_view name, double fallback) const {
  return Has(name) ? Real(name) : fallback;
}

std::int64_t Config::IntOr(std::string_view name, std::int64_t fallback) const {
  return Has(name) ? Int(name) : fallback;
}

bool Config::BoolOr(std::string_view name, bool fallback) const {
  return Has(name) ? Bool(name) : fallback;
}

std::string Config::TextOr(std::string_view name, std::string fallback) const {
  return Has(name) ? Text(name) : fallback;
}

std::set<std::string> Config::Unread() const {
  std::set<std::string> unread;
  for (const auto& [name, value] : values_) {
    if (!read_.contains(name)) unread.insert(name);
  }
  return unread;
}

const Config::Value* Config::Find(std::string_view name) const {
  read_.emplace(name);
  const auto found = values_.find(std::string(name));
  return found == values_.end() ? nullptr : &found->second;
}

const Config::Value& Config::Get(std::string_view name) const {
  if (const Value* value = Find(name)) return *value;
  std::string known;
  for (const auto& [other, value] : values_) known += (known.empty() ? "" : ", ") + other;
  throw Error("config." + std::string(name) + ": missing; the configuration has " +
              (known.empty() ? "no parameters" : known) +
              ". Add it to `parameters` of the sweep file, or to --config");
}

std::string Config::ToJson() const {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, value] : values_) {
    std::visit([&json, &name = name](const auto& v) { json[name] = v; }, value);
  }
  return json.dump();
}

Config Config::FromJson(std::string_view text) {
  const auto json = ParseJson<nlohmann::json>(text);
  if (!json.is_object())
    throw Error("config: not a JSON object: " + std::string(text.substr(0, 80)));
  std::map<std::string, Value> values;
  for (const auto& [name, value] : json.items()) {
    if (value.is_boolean()) {
      values[name] = value.get<bool>();
    } else if (value.is_number_integer()) {
      values[name] = value.get<std::int64_t>();
    } else if (value.is_number_float()) {
      values[name] = value.get<double>();
    } else if (value.is_string()) {
      values[name] = value.get<std::string>();
    } else {
      throw Error("config." + name + ": is " + value.dump().substr(0, 80) +
                  "; use a number, a boolean or a text");
    }
  }
  return Config(std::move(values));
}

}  // namespace attune::inline sdk
