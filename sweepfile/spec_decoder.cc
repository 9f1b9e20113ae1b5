#include "sweepfile/spec_decoder.h"

#include <algorithm>
#include <limits>

#include "base/result.h"
#include "sweepfile/keys.h"
#include "sweepfile/labels.h"
#include "sweepfile/scalar.h"

namespace attune::sweepfile {
namespace {

constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();
constexpr int64_t kMinInt64 = std::numeric_limits<int64_t>::min();

// Keys of later versions are missing in older logs.
bool Has(const Json& object, const char* key) { return object.is_object() && object.contains(key); }

}  // namespace

void SpecDecoder::Fail(const std::string& message) {
  if (!error_) error_ = Error{ErrorCode::kCorrupt, "spec of a sweep: " + message};
}

const Json& SpecDecoder::Member(const Json& object, const char* key) {
  static const Json kNothing;
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found != object.end()) return *found;
  Fail(std::string(key) + " is missing");
  return kNothing;
}

std::string SpecDecoder::Text(const Json& object, const char* key) {
  const Json& member = Member(object, key);
  if (member.is_string()) return member.get<std::string>();
  Fail(std::string(key) + " is no text");
  return "";
}

int64_t SpecDecoder::Integer(const Json& object, const char* key, int64_t min, int64_t max) {
  const Result<Value> value = ValueFromJson(Member(object, key));
  const auto* integer = value.ok() ? std::get_if<int64_t>(&*value) : nullptr;
  if (integer != nullptr && *integer >= min && *integer <= max) return *integer;
  Fail(std::string(key) + " is no integer, or out of its bounds");
  return 0;
}

int SpecDecoder::Int(const Json& object, const char* key) {
  return static_cast<int>(Integer(object, key, 0, kMaxInt));
}

double SpecDecoder::Real(const Json& object, const char* key) {
  const Json& member = Member(object, key);
  if (member.is_number()) return member.get<double>();
  Fail(std::string(key) + " is no number");
  return 0;
}

Seconds SpecDecoder::Duration(const Json& object, const char* key) {
  const Result<Seconds> duration = ReadDuration(Scalar(object, key));
  if (duration.ok()) return *duration;
  Fail(std::string(key) + ": " + duration.error().message);
  return {};
}

std::vector<std::string> SpecDecoder::Texts(const Json& object, const char* key) {
  std::vector<std::string> texts;
  const Json& list = Member(object, key);
  if (!list.is_array()) Fail(std::string(key) + " is no list");
  for (const Json& item : list) {
    if (item.is_string()) {
      texts.push_back(item.get<std::string>());
    } else {
      Fail(std::string(key) + " holds something else than texts");
    }
  }
  return texts;
}

std::vector<Value> SpecDecoder::Values(const Json& list) {
  std::vector<Value> values;
  if (!list.is_array()) Fail("values are no list");
  for (const Json& item : list) {
    Result<Value> value = ValueFromJson(item);
    if (value.ok()) {
      values.push_back(*std::move(value));
    } else {
      Fail("values: " + value.error().message);
    }
  }
  return values;
}

Node SpecDecoder::Scalar(const Json& object, const char* key) {
  return {.kind = Node::Kind::kScalar, .text = Text(object, key)};
}

Domain SpecDecoder::DecodeDomain(const Json& parameter) {
  if (parameter.contains("values")) return CategoricalDomain{Values(parameter["values"])};
  if (parameter.contains("value")) {
    Result<Value> value = ValueFromJson(parameter["value"]);
    if (!value.ok()) {
      Fail("value: " + value.error().message);
      return ConstantDomain{};
    }
    return ConstantDomain{*std::move(value)};
  }
  const Scale scale = Text(parameter, "scale") == "log" ? Scale::kLog : Scale::kLinear;
  if (Text(parameter, "type") == "int") {
    return IntDomain{.min = Integer(parameter, "min", kMinInt64, kMaxInt64),
                     .max = Integer(parameter, "max", kMinInt64, kMaxInt64),
                     .scale = scale,
                     .step = Integer(parameter, "step", 1, kMaxInt64)};
  }
  FloatDomain domain{.min = Real(parameter, "min"), .max = Real(parameter, "max"), .scale = scale};
  if (parameter.contains("step")) domain.step = Real(parameter, "step");
  return domain;
}

Condition SpecDecoder::DecodeCondition(const std::string& parent, const Json& json) {
  Condition condition{.parent = parent};
  if (json.is_array()) {
    condition.any_of = Values(json);
    return condition;
  }
  if (!json.is_object()) Fail("a condition is neither a list nor bounds");
  if (json.contains("gte")) condition.at_least = Real(json, "gte");
  if (json.contains("lte")) condition.at_most = Real(json, "lte");
  return condition;
}

void SpecDecoder::DecodeSpace() {
  std::vector<Parameter> parameters;
  const Json& space = Member(json_, "parameters");
  if (!space.is_object()) return Fail("parameters are no map");
  for (const auto& [name, json] : space.items()) {
    if (!json.is_object()) return Fail("parameters." + name + " is no map");
    Parameter parameter{.name = name, .domain = DecodeDomain(json)};
    if (json.contains("when")) {
      const Json& when = json["when"];
      if (!when.is_object()) return Fail("parameters." + name + ".when is no map");
      for (const auto& [parent, condition] : when.items()) {
        parameter.when.push_back(DecodeCondition(parent, condition));
      }
    }
    parameters.push_back(std::move(parameter));
  }
  if (error_) return;
  const std::vector<SpaceFault> faults = SearchSpace::Check(parameters);
  if (!faults.empty()) {
    return Fail("parameters." + faults[0].parameter + "." + faults[0].key + ": " +
                faults[0].message);
  }
  spec_.space = SearchSpace(std::move(parameters));
}

void SpecDecoder::DecodePoints() {
  const Json& points = Member(json_, "initial_points");
  if (!points.is_array()) Fail("initial_points are no list");
  for (const Json& point : points) {
    Result<Config> config = ConfigFromJson(point);
    if (!config.ok()) return Fail("initial_points: " + config.error().message);
    spec_.initial_points.push_back(*std::move(config));
  }
}

void SpecDecoder::DecodeProgram() {
  spec_.program.command = Texts(json_, "command");
  const Json& environment = Member(json_, "env");
  if (!environment.is_object()) return Fail("env is no map");
  for (const auto& [name, value] : environment.items()) {
    if (!value.is_string()) return Fail("env." + name + " is no text");
    spec_.program.environment.emplace_back(name, value.get<std::string>());
  }
  spec_.program.working_directory = Text(json_, "working_directory");
  if (Has(json_, "reports"))
    spec_.program.report_pattern = Text(Member(json_, "reports"), "pattern");
}

void SpecDecoder::DecodeObjectives() {
  spec_.objectives.clear();
  if (Has(json_, "metrics")) {
    for (const Json& metric : json_["metrics"]) DecodeObjective(metric);
    if (spec_.objectives.empty()) Fail("metrics are no list");
  } else {
    DecodeObjective(Member(json_, "metric"));
  }
  auto& targets = spec_.stop.targets;
  while (!targets.empty() && !targets.back()) targets.pop_back();
}

void SpecDecoder::DecodeObjective(const Json& metric) {
  spec_.objectives.push_back({.metric = Text(metric, "name"),
                              .mode = Text(metric, "mode") == "min" ? Mode::kMin : Mode::kMax});
  auto& target = spec_.stop.targets.emplace_back();
  if (Has(metric, "target")) target = Real(metric, "target");
}

void SpecDecoder::DecodeConstraints() {
  if (!Has(json_, "constraints")) return;
  for (const auto& [metric, bounds] : json_["constraints"].items()) {
    Constraint& constraint = spec_.constraints.emplace_back(Constraint{.metric = metric});
    if (Has(bounds, "min")) constraint.min = Real(bounds, "min");
    if (Has(bounds, "max")) constraint.max = Real(bounds, "max");
    if (!constraint.min && !constraint.max) Fail("constraints." + metric + " has no bounds");
  }
}

// `common` is the key beside `name` that is no option.
AlgorithmSpec SpecDecoder::DecodeAlgorithm(const char* key,
                                           std::initializer_list<std::string_view> common) {
  const Json& section = Member(json_, key);
  AlgorithmSpec algorithm{.name = Text(section, "name")};
  if (!section.is_object()) return algorithm;
  for (const auto& [name, json] : section.items()) {
    if (name == "name" || std::ranges::find(common, name) != common.end()) continue;
    Result<Value> value = ValueFromJson(json);
    if (value.ok()) {
      algorithm.options[name] = *std::move(value);
    } else {
      Fail(std::string(key) + "." + name + ": " + value.error().message);
    }
  }
  return algorithm;
}

void SpecDecoder::DecodeWarmStart() {
  for (const std::string& name : Texts(json_, "warm_start")) {
    const auto id = ParseSweepId(name);
    if (!id.ok()) return Fail("warm_start: " + id.error().message);
    spec_.warm_start.push_back(*id);
  }
}

void SpecDecoder::DecodeGang() {
  const Json& resources = Member(json_, "resources");
  spec_.gang.workers = static_cast<int>(Integer(resources, "workers", 1, kMaxInt));
  spec_.gang.per_worker.cpus = Int(resources, "cpus_per_worker");
  const Json& gpus = Member(resources, "gpus_per_worker");
  if (gpus.is_number_float()
          ? !SetGpus(Value(gpus.get<double>()), spec_.gang)
          : !SetGpus(Value(int64_t{Int(resources, "gpus_per_worker")}), spec_.gang))
    return Fail("gpus_per_worker is " + gpus.dump());
  const Result<int64_t> memory = ReadSize(Scalar(resources, "memory_per_worker"));
  if (!memory.ok()) return Fail("memory_per_worker: " + memory.error().message);
  spec_.gang.per_worker.memory_bytes = *memory;
  if (Has(resources, "placement")) {
    const auto placement = PlacementNamed(Text(resources, "placement"));
    if (!placement) return Fail("placement is " + Text(resources, "placement"));
    spec_.gang.placement = *placement;
  }
  if (Has(resources, "min_workers")) {
    spec_.gang.min_workers =
        static_cast<int>(Integer(resources, "min_workers", 1, spec_.gang.workers));
    spec_.gang.grow_after = Duration(resources, "grow_after");
    if (Has(resources, "grow")) {
      const auto grow = GrowthNamed(Text(resources, "grow"));
      if (!grow) return Fail("grow is " + Text(resources, "grow"));
      spec_.gang.grow = *grow;
    }
  }
  if (!Has(resources, "requires")) return;
  Result<Requirements> required = RequirementsFromJson(Member(resources, "requires"));
  if (!required.ok()) return Fail(required.error().message);
  spec_.gang.required = *std::move(required);
}

void SpecDecoder::DecodeCheckpoint() {
  const Json& checkpoint = Member(json_, "checkpoint");
  spec_.checkpoint.every = Step(Integer(checkpoint, "every", 0, kMaxInt64));
  if (!Has(checkpoint, "keep_last")) return;
  spec_.checkpoint.keep_last = static_cast<int>(Integer(checkpoint, "keep_last", 0, kMaxInt));
  spec_.checkpoint.keep_best = Int(checkpoint, "keep_best");
}

void SpecDecoder::DecodeLimits(bool external) {
  spec_.max_concurrent_trials = Int(json_, "max_concurrent_trials");
  if (Has(json_, "priority")) {
    spec_.priority = static_cast<int>(Integer(json_, "priority", -kMaxPriority, kMaxPriority));
  }
  const Json& failure = Member(json_, "failure");
  spec_.failure.max_restarts = Int(failure, "max_restarts");
  spec_.failure.max_failed_trials = Int(failure, "max_failed_trials");
  if (Has(failure, "backoff")) spec_.failure.backoff = Duration(failure, "backoff");
  if (!external) spec_.failure.stall_timeout = Duration(failure, "stall_timeout");
  if (Has(failure, "on_log")) {
    for (const Json& policy : failure["on_log"]) {
      const auto action = LogActionNamed(Text(policy, "action"));
      if (!action) return Fail("action is " + Text(policy, "action"));
      spec_.failure.on_log.push_back({Text(policy, "pattern"), *action});
    }
  }

  const Json& stop = Member(json_, "stop");
  spec_.stop.max_trials = Int(stop, "max_trials");
  if (!Has(stop, "max_time")) return;
  spec_.stop.max_time = Duration(stop, "max_time");
  if (!external) spec_.stop.max_gpu_hours = Real(stop, "max_gpu_hours");
  spec_.stop.patience = Int(stop, "patience");
  spec_.stop.max_trial_time = Duration(stop, "max_trial_time");
  spec_.stop.trial_patience = Int(stop, "trial_patience");
  DecodeTrialStoppers(stop);
}

void SpecDecoder::DecodeTrialStoppers(const Json& stop) {
  if (Has(stop, "plateau")) {
    const Json& json = stop["plateau"];
    Plateau& plateau = spec_.stop.plateau.emplace();
    plateau.metric = {.metric = Text(json, "metric"),
                      .mode = Text(json, "mode") == "min" ? Mode::kMin : Mode::kMax};
    plateau.patience = static_cast<int>(Integer(json, "patience", 1, kMaxInt));
    if (Has(json, "min_delta")) plateau.min_delta = Real(json, "min_delta");
    if (Has(json, "std")) plateau.std = Real(json, "std");
    plateau.grace_period = Step(Integer(json, "grace_period", 1, kMaxInt64));
  }
  if (!Has(stop, "threshold")) return;
  for (const auto& [metric, json] : stop["threshold"].items()) {
    Threshold& threshold = spec_.stop.thresholds.emplace_back(Threshold{.metric = metric});
    if (Has(json, "at_least")) threshold.at_least = Real(json, "at_least");
    if (Has(json, "at_most")) threshold.at_most = Real(json, "at_most");
    threshold.grace_period = Step(Integer(json, "grace_period", 1, kMaxInt64));
  }
}

Result<SweepSpec> SpecDecoder::Decode() {
  if (!json_.is_object()) return Error{ErrorCode::kCorrupt, "spec of a sweep: no JSON object"};
  if (Text(json_, "apiVersion") != "attune/v1") {
    return Error{ErrorCode::kCorrupt,
                 "spec of a sweep: apiVersion is not attune/v1; it was written "
                 "by a newer version"};
  }
  spec_.name = Text(json_, "name");
  spec_.tags = Texts(json_, "tags");
  // Without a command there is nothing else about the program either.
  const bool external = !Has(json_, "command") && !Has(json_, "working_directory");
  if (!external) DecodeProgram();
  DecodeObjectives();
  DecodeConstraints();
  DecodeSpace();
  DecodePoints();
  spec_.searcher = DecodeAlgorithm("searcher", {"seed"});
  spec_.seed = static_cast<uint64_t>(Integer(Member(json_, "searcher"), "seed", 0, kMaxSeed));
  if (Has(json_, "warm_start")) DecodeWarmStart();
  const Json& scheduler = Member(json_, "scheduler");
  spec_.scheduler = DecodeAlgorithm("scheduler", {"max", "time_attr"});
  spec_.max_step = Step(Integer(scheduler, "max", 0, kMaxInt64));
  if (Has(scheduler, "time_attr")) spec_.time_attr = Text(scheduler, "time_attr");
  if (!external) {
    DecodeGang();
    DecodeCheckpoint();
  }
  DecodeLimits(external);
  if (error_) return *error_;
  return std::move(spec_);
}

}  // namespace attune::sweepfile
