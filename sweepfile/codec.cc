#include "sweepfile/codec.h"

#include <cmath>
#include <limits>
#include <utility>

#include "base/result.h"
#include "sweepfile/keys.h"
#include "sweepfile/labels.h"
#include "sweepfile/scalar.h"
#include "sweepfile/spec_decoder.h"

namespace attune::sweepfile {
namespace {

Error Corrupt(const std::string& message) { return {ErrorCode::kCorrupt, message}; }

template <class T>
Json ListToJson(const std::vector<T>& items) {
  Json json = Json::array();
  for (const T& item : items) json.push_back(item);
  return json;
}

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
    for (const Condition& condition : parameter.when) {
      one["when"][condition.parent] = ConditionToJson(condition);
    }
    json[parameter.name] = std::move(one);
  }
  return json;
}

void AddObjectives(const SweepSpec& spec, Json& json) {
  Json metrics = Json::array();
  for (size_t i = 0; i < spec.objectives.size(); ++i) {
    const Objective& objective = spec.objectives[i];
    Json& metric = metrics.emplace_back(
        Json{{"name", objective.metric}, {"mode", objective.mode == Mode::kMin ? "min" : "max"}});
    if (i < spec.stop.targets.size() && spec.stop.targets[i])
      metric["target"] = *spec.stop.targets[i];
  }
  if (metrics.size() == 1) {
    json["metric"] = std::move(metrics.front());
  } else {
    json["metrics"] = std::move(metrics);
  }
  for (const Constraint& constraint : spec.constraints) {
    Json& bounds = json["constraints"][constraint.metric] = Json::object();
    if (constraint.min) bounds["min"] = *constraint.min;
    if (constraint.max) bounds["max"] = *constraint.max;
  }
}

void AddProgram(const Program& program, Json& json) {
  json["command"] = ListToJson(program.command);
  json["env"] = Json::object();
  for (const auto& [name, value] : program.environment) json["env"][name] = value;
  json["working_directory"] = program.working_directory;
  if (!program.report_pattern.empty()) json["reports"] = {{"pattern", program.report_pattern}};
}

Json GangToJson(const GangSpec& gang) {
  Json json = {{"workers", gang.workers},
               {"cpus_per_worker", gang.per_worker.cpus},
               {"gpus_per_worker",
                gang.gpu_percent < 100 ? Json(GpusPerWorker(gang)) : Json(gang.per_worker.gpus)},
               {"memory_per_worker", FormatSize(gang.per_worker.memory_bytes)},
               {"placement", Name(gang.placement)}};
  if (gang.min_workers > 0) {
    json["min_workers"] = gang.min_workers;
    json["grow_after"] = FormatDuration(gang.grow_after);
    json["grow"] = Name(gang.grow);
  }
  if (!gang.required.empty()) json["requires"] = ToJson(gang.required);
  return json;
}

void AddOptions(const AlgorithmSpec& algorithm, Json& json) {
  for (const auto& [name, value] : algorithm.options) json[name] = ToJson(value);
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
  return Corrupt("expected a boolean, a number or a text, found " +
                 json.dump(-1, ' ', false, kReplaceInvalid));
}

Result<Config> ConfigFromJson(const Json& json) {
  if (!json.is_object()) return Corrupt("a configuration is no JSON object");
  Config config;
  for (const auto& [name, member] : json.items()) {
    Result<Value> value = ValueFromJson(member);
    if (!value.ok()) return Corrupt(name + ": " + value.error().message);
    config.Set(name, *std::move(value));
  }
  return config;
}

Result<Metrics> MetricsFromJson(const Json& json) {
  if (!json.is_object()) return Corrupt("metrics are no JSON object");
  Metrics metrics;
  for (const auto& [name, member] : json.items()) {
    const Result<double> value = RealFromJson(member);
    if (!value.ok()) return Corrupt(name + ": " + value.error().message);
    metrics[name] = *value;
  }
  return metrics;
}

Json ToJson(const SweepSpec& spec) {
  Json json = {{"apiVersion", "attune/v1"}, {"kind", "Sweep"}, {"name", spec.name}};
  json["tags"] = ListToJson(spec.tags);
  if (!spec.External()) AddProgram(spec.program, json);
  AddObjectives(spec, json);
  json["parameters"] = SpaceToJson(spec.space);
  json["initial_points"] = Json::array();
  for (const Config& point : spec.initial_points) json["initial_points"].push_back(ToJson(point));
  json["searcher"] = {{"name", spec.searcher.name}, {"seed", spec.seed}};
  AddOptions(spec.searcher, json["searcher"]);
  json["warm_start"] = Json::array();
  for (const SweepId sweep : spec.warm_start) json["warm_start"].push_back(ToString(sweep));
  json["scheduler"] = {{"name", spec.scheduler.name}, {"max", spec.max_step.value}};
  if (!spec.time_attr.empty()) json["scheduler"]["time_attr"] = spec.time_attr;
  AddOptions(spec.scheduler, json["scheduler"]);
  if (!spec.External()) json["resources"] = GangToJson(spec.gang);
  json["max_concurrent_trials"] = spec.max_concurrent_trials;
  json["priority"] = spec.priority;
  if (!spec.External()) {
    json["checkpoint"] = {{"every", spec.checkpoint.every.value},
                          {"keep_last", spec.checkpoint.keep_last},
                          {"keep_best", spec.checkpoint.keep_best}};
  }
  json["failure"] = {{"max_restarts", spec.failure.max_restarts},
                     {"max_failed_trials", spec.failure.max_failed_trials},
                     {"backoff", FormatDuration(spec.failure.backoff)},
                     {"stall_timeout", FormatDuration(spec.failure.stall_timeout)}};
  for (const LogPolicy& policy : spec.failure.on_log)
    json["failure"]["on_log"].push_back(
        {{"pattern", policy.pattern}, {"action", Name(policy.action)}});
  json["stop"] = {{"max_trials", spec.stop.max_trials},
                  {"max_time", FormatDuration(spec.stop.max_time)},
                  {"max_gpu_hours", spec.stop.max_gpu_hours},
                  {"patience", spec.stop.patience},
                  {"max_trial_time", FormatDuration(spec.stop.max_trial_time)},
                  {"trial_patience", spec.stop.trial_patience}};
  if (spec.stop.plateau) json["stop"]["plateau"] = ToJson(*spec.stop.plateau);
  if (!spec.stop.thresholds.empty()) json["stop"]["threshold"] = ToJson(spec.stop.thresholds);
  if (spec.External()) {
    json["failure"].erase("stall_timeout");
    json["stop"].erase("max_gpu_hours");
  }
  return json;
}

Json ToJson(const Plateau& plateau) {
  Json json = {{"metric", plateau.metric.metric},
               {"mode", Name(plateau.metric.mode)},
               {"patience", plateau.patience}};
  if (plateau.std) {
    json["std"] = *plateau.std;
  } else {
    json["min_delta"] = plateau.min_delta;
  }
  json["grace_period"] = plateau.grace_period.value;
  return json;
}

Json ToJson(const std::vector<Threshold>& thresholds) {
  Json json = Json::object();
  for (const Threshold& threshold : thresholds) {
    Json& bounds = json[threshold.metric] = Json::object();
    if (threshold.at_least) bounds["at_least"] = *threshold.at_least;
    if (threshold.at_most) bounds["at_most"] = *threshold.at_most;
    bounds["grace_period"] = threshold.grace_period.value;
  }
  return json;
}

Result<SweepSpec> SpecFromJson(const Json& json) { return SpecDecoder(json).Decode(); }

}  // namespace attune::sweepfile
