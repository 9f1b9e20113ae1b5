#include "server/http/render.h"

#include <cmath>
#include <utility>

#include "core/state/placement.h"
#include "json/parse.h"
#include "server/store/format_time.h"
#include "sweepfile/codec.h"

namespace attune::server {
namespace {

template <class T>
Json OrNull(const std::optional<T>& value) {
  if (value) return *value;
  return nullptr;
}

Json RealOrNull(const std::optional<double>& value) {
  if (value) return sweepfile::RealToJson(*value);
  return nullptr;
}

Json CheckpointToJson(const CheckpointRow& checkpoint) {
  return {{"step", checkpoint.step.value}, {"attempt", checkpoint.attempt},
          {"path", checkpoint.path},       {"digest", checkpoint.digest},
          {"bytes", checkpoint.bytes},     {"time", checkpoint.time},
          {"pinned", checkpoint.pinned}};
}

Json CountsToJson(const SweepRow& sweep) {
  using enum TrialState;
  Json json = Json::object();
  for (TrialState state : {kPending, kRunning, kPaused, kCompleted, kStopped, kFailed, kKilled}) {
    const auto found = sweep.trials.find(Name(state));
    json[std::string(Name(state))] = found == sweep.trials.end() ? 0 : found->second;
  }
  return json;
}

// As it is stored, or null.
Json RationaleToJson(const TrialRow& trial) {
  return trial.rationale ? ParseJson<Json>(*trial.rationale) : Json();
}

Json BestToJson(const BestTrial* best) {
  if (best == nullptr) return nullptr;
  return {{"trial", best->trial.value},
          {"step", best->step.value},
          {"value", best->values.front()},
          {"values", best->values},
          {"config", sweepfile::ToJson(best->config)},
          {"metrics", sweepfile::ToJson(best->metrics)},
          {"checkpoint", OrNull(best->checkpoint)},
          {"checkpoint_step", OrNull(best->checkpoint_step)}};
}

Json EditToJson(const std::optional<SweepEdit>& edit) {
  if (!edit) return nullptr;
  return {{"time", edit->time}, {"actor", edit->actor}, {"changes", edit->changes}};
}

Json FrontToJson(const std::vector<BestTrial>& front) {
  Json json = Json::array();
  for (const BestTrial& report : front) json.push_back(BestToJson(&report));
  return json;
}

Json MetricToJson(const Objective& objective) {
  return {{"name", objective.metric}, {"mode", objective.mode == Mode::kMax ? "max" : "min"}};
}

// With its target where it has one.
Json MetricsToJson(const SweepSpec& spec) {
  Json json = Json::array();
  for (size_t i = 0; i < spec.objectives.size(); ++i) {
    json.push_back(MetricToJson(spec.objectives[i]));
    const auto& targets = spec.stop.targets;
    json.back()["target"] = RealOrNull(i < targets.size() ? targets[i] : std::nullopt);
  }
  return json;
}

Json ConstraintsToJson(const SweepSpec& spec) {
  Json json = Json::object();
  for (const Constraint& constraint : spec.constraints)
    json[constraint.metric] = {{"min", RealOrNull(constraint.min)},
                               {"max", RealOrNull(constraint.max)}};
  return json;
}

std::string_view ScaleName(Scale scale) { return scale == Scale::kLog ? "log" : "linear"; }

struct DomainMembers {
  Json operator()(const FloatDomain& domain) const {
    Json json = {{"type", "float"},
                 {"min", domain.min},
                 {"max", domain.max},
                 {"scale", ScaleName(domain.scale)}};
    if (domain.step) json["step"] = *domain.step;
    return json;
  }
  Json operator()(const IntDomain& domain) const {
    return {{"type", "int"},
            {"min", domain.min},
            {"max", domain.max},
            {"scale", ScaleName(domain.scale)},
            {"step", domain.step}};
  }
  Json operator()(const CategoricalDomain& domain) const {
    Json values = Json::array();
    for (const Value& value : domain.values) values.push_back(sweepfile::ToJson(value));
    return {{"type", "categorical"}, {"values", std::move(values)}};
  }
  Json operator()(const ConstantDomain& domain) const {
    return {{"type", "constant"}, {"value", sweepfile::ToJson(domain.value)}};
  }
};

Json AttemptToJson(const AttemptRow& attempt) {
  return {{"number", attempt.number},
          {"epoch", attempt.epoch},
          {"state", attempt.state},
          {"outcome", attempt.outcome},
          {"failure", attempt.failure},
          {"executor", attempt.executor},
          {"resumed_from", OrNull(attempt.resumed_from)},
          {"pids", ParseJsonOrThrow<Json>(attempt.pids)},
          {"ranks", ParseJsonOrThrow<Json>(attempt.ranks)},
          {"decided", attempt.decided},
          {"started", OrNull(attempt.started)},
          {"first_step", OrNull(attempt.first_step)},
          {"ended", OrNull(attempt.ended)}};
}

Json DecisionToJson(const DecisionRow& decision) {
  return {{"time", decision.time},
          {"attempt", decision.attempt},
          {"step", decision.step.value},
          {"verdict", decision.verdict},
          {"reason", decision.reason},
          {"rule", decision.rule},
          {"rung", decision.rung.value},
          {"value", RealOrNull(decision.value)},
          {"cutoff", RealOrNull(decision.cutoff)},
          {"rank", decision.rank},
          {"peers", decision.peers},
          {"policy", decision.policy}};
}

template <class T, class Write>
void AppendList(std::string& text, const std::vector<T>& items, Write write) {
  text += '[';
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += ',';
    write(items[i]);
  }
  text += ']';
}

void AppendReals(std::string& text, const std::vector<double>& values) {
  AppendList(text, values, [&](double value) {
    const bool finite = std::isfinite(value);
    text += finite ? FormatReal(value) : '"' + FormatReal(value) + '"';
  });
}

}  // namespace

Json SweepToJson(const SweepRow& sweep, const std::vector<Step>& rungs, const LiveSweep& live) {
  const SweepSpec& spec = sweep.spec;
  return {{"id", ToString(sweep.id)},
          {"name", spec.name},
          {"tags", spec.tags},
          {"owner", sweep.owner},
          {"state", sweep.state},
          {"reason", sweep.reason},
          {"created", sweep.created},
          {"ended", OrNull(sweep.ended)},
          {"metric", MetricToJson(spec.objective())},
          {"metrics", MetricsToJson(spec)},
          {"constraints", ConstraintsToJson(spec)},
          {"searcher", spec.searcher.name},
          {"warm_start", sweep.warm_start},
          {"scheduler", spec.scheduler.name},
          {"rungs", StepsToJson(rungs)},
          {"time_attr", spec.time_attr},
          {"max_step", spec.max_step.value},
          {"max_trials", spec.stop.max_trials},
          {"workers", spec.gang.workers},
          {"min_workers", MinWorkers(spec.gang)},
          {"priority", spec.priority},
          {"max_concurrent_trials", spec.max_concurrent_trials},
          {"external", spec.External()},
          {"limits", LimitsToJson(spec.stop)},
          {"trials", CountsToJson(sweep)},
          {"best", BestToJson(sweep.Best())},
          {"front", FrontToJson(sweep.front)},
          {"logged", sweep.logged},
          {"edited", EditToJson(sweep.edit)},
          {"waiting", live.waiting},
          {"stopping", live.stopping}};
}

Json LimitsToJson(const StopPolicy& stop) {
  return {{"target", RealOrNull(stop.targets.empty() ? std::nullopt : stop.targets.front())},
          {"max_time", stop.max_time.value},
          {"max_gpu_hours", stop.max_gpu_hours},
          {"patience", stop.patience},
          {"max_trial_time", stop.max_trial_time.value},
          {"trial_patience", stop.trial_patience},
          {"plateau", stop.plateau ? sweepfile::ToJson(*stop.plateau) : Json()},
          {"threshold", sweepfile::ToJson(stop.thresholds)}};
}

Json ParametersToJson(const SearchSpace& space) {
  Json json = Json::array();
  for (const Parameter& parameter : space.parameters()) {
    Json one = {{"name", parameter.name}};
    const Json members = std::visit(DomainMembers(), parameter.domain);
    for (const auto& [name, value] : members.items()) one[name] = value;
    json.push_back(std::move(one));
  }
  return json;
}

Json StepsToJson(const std::vector<Step>& steps) {
  Json json = Json::array();
  for (Step step : steps) json.push_back(step.value);
  return json;
}

Json TrialToJson(const TrialRow& trial, const std::string& waiting) {
  return {{"sweep", ToString(trial.id.sweep)},
          {"number", trial.id.number.value},
          {"state", trial.state},
          {"reason", trial.reason},
          {"config", sweepfile::ToJson(trial.config)},
          {"origin", trial.origin},
          {"created", trial.created},
          {"ended", OrNull(trial.ended)},
          {"attempts", trial.attempts},
          {"step", trial.step.value},
          {"milestone", trial.milestone.value},
          {"seconds", sweepfile::RealToJson(trial.seconds.value)},
          {"metrics", sweepfile::ToJson(trial.metrics)},
          {"best", RealOrNull(trial.best)},
          {"checkpoint", OrNull(trial.checkpoint)},
          {"waiting", waiting}};
}

Json DetailToJson(const TrialDetail& detail, const std::string& waiting) {
  Json json = TrialToJson(detail.trial, waiting);
  json["rationale"] = RationaleToJson(detail.trial);
  Json& history = json["history"] = Json::array();
  for (const ReportRow& row : detail.history) {
    history.push_back({{"step", row.report.step.value},
                       {"time", FormatTime(row.time)},
                       {"attempt", row.attempt},
                       {"seconds", sweepfile::RealToJson(row.report.seconds.value)},
                       {"metrics", sweepfile::ToJson(row.report.metrics)}});
  }
  Json& attempts = json["attempts_list"] = Json::array();
  for (const AttemptRow& attempt : detail.attempts) attempts.push_back(AttemptToJson(attempt));
  Json& decisions = json["decisions"] = Json::array();
  for (const DecisionRow& decision : detail.decisions)
    decisions.push_back(DecisionToJson(decision));
  Json& checkpoints = json["checkpoints"] = Json::array();
  for (const CheckpointRow& checkpoint : detail.checkpoints) {
    Json& row = checkpoints.emplace_back(CheckpointToJson(checkpoint));
    row["dropped"] = OrNull(checkpoint.dropped);
    row["reason"] = checkpoint.reason;
  }
  return json;
}

Json KeptToJson(SweepId sweep, const std::vector<KeptRow>& kept) {
  Json json = Json::array();
  for (const KeptRow& row : kept) {
    Json& checkpoint = json.emplace_back(CheckpointToJson(row.checkpoint));
    checkpoint["sweep"] = ToString(sweep);
    checkpoint["trial"] = row.trial.value;
    checkpoint["executor"] = row.executor;
    checkpoint["best"] = RealOrNull(row.best);
  }
  return json;
}

Json ExplanationToJson(const TrialRow& trial, const std::optional<Explanation>& explanation) {
  Json json = {{"origin", trial.origin},  {"rationale", RationaleToJson(trial)},
               {"decision", nullptr},     {"policy", nullptr},
               {"policy_changed", false}, {"rung", Json::array()}};
  if (!explanation) return json;
  json["decision"] = DecisionToJson(explanation->decision);
  json["policy"] = ParseJsonOrThrow<Json>(explanation->policy);
  json["policy_changed"] = explanation->policy_changed;
  for (const RungRow& row : explanation->rung) {
    json["rung"].push_back(
        {{"number", row.trial.value}, {"value", RealOrNull(row.value)}, {"verdict", row.verdict}});
  }
  return json;
}

Json ImportancesToJson(const std::string& metric, const Importances& importances) {
  Json json = {{"metric", metric},
               {"trials", importances.trials},
               {"best", importances.best},
               {"reason", importances.reason},
               {"parameters", Json::array()}};
  for (const auto& [parameter, share] : importances.parameters)
    json["parameters"].push_back({{"name", parameter}, {"importance", share}});
  return json;
}

Json LoggedToJson(const LoggedRow& row) {
  return {{"seq", row.seq.value},
          {"time", FormatTime(row.time)},
          {"attempt", row.attempt},
          {"step", row.step},
          {"metrics", sweepfile::ToJson(row.metrics)}};
}

std::string CurvesToText(const std::string& metric, const Curves& curves) {
  std::string text = "{\"metric\":" + Dump(Json(metric)) +
                     ",\"seq\":" + std::to_string(curves.seq.value) + ",\"trials\":";
  AppendList(text, curves.trials, [&](const Curve& curve) {
    text += "{\"number\":" + std::to_string(curve.trial.value) + ",\"steps\":";
    AppendList(text, curve.steps, [&](int64_t step) { text += std::to_string(step); });
    text += ",\"values\":";
    AppendReals(text, curve.values);
    if (!curve.logged_steps.empty()) {
      text += ",\"logged_steps\":";
      AppendReals(text, curve.logged_steps);
      text += ",\"logged_values\":";
      AppendReals(text, curve.logged_values);
    }
    text += ",\"clones\":";
    AppendList(text, curve.clones, [&](const Clone& clone) {
      text += "{\"donor\":" + std::to_string(clone.donor.value) +
              ",\"step\":" + std::to_string(clone.step.value) + '}';
    });
    text += '}';
  });
  return text + '}';
}

Backend::ExecutorStatus StatusOf(const State& state, const Executor& executor,
                                 std::optional<double> silent_seconds) {
  const Host& host = executor.host;
  const bool online = !executor.lost && silent_seconds;
  const char* there = executor.drain ? executor.attempts.empty() ? "drained" : "draining"
                      : !executor.problem.empty() ? "unwell"
                      : executor.aside            ? "set_aside"
                                                  : "online";
  Backend::ExecutorStatus status{.name = executor.name,
                                 .state = online ? there : "lost",
                                 .address = executor.address,
                                 .total = host.total,
                                 .free = host.Free(),
                                 .labels = host.labels,
                                 .drain = executor.drain,
                                 .problem = executor.problem,
                                 .aside = executor.aside,
                                 .silent_seconds = silent_seconds};
  for (const auto& [epoch, id] : executor.attempts) {
    const Attempt& live = *state.Find(id)->live;
    Backend::ExecutorStatus::Part part{live.id, -1, -1};
    for (int rank = 0; rank < std::ssize(live.ranks); ++rank) {
      if (live.ranks[static_cast<size_t>(rank)].executor != executor.name) continue;
      if (part.first_rank < 0) part.first_rank = rank;
      part.last_rank = rank;
    }
    status.running.push_back(part);
  }
  return status;
}

Json DemandToJson(const Demand& demand) {
  const Resources& worker = demand.request.per_worker;
  Json json = {{"sweep", ToString(demand.sweep)},
               {"gangs", demand.gangs},
               {"workers", demand.request.max_workers},
               {"min_workers", demand.request.min_workers},
               {"cpus_per_worker", worker.cpus},
               {"gpus_per_worker", worker.gpus},
               {"memory_per_worker", worker.memory_bytes},
               {"requires", sweepfile::ToJson(demand.request.required)},
               {"reason", demand.reason}};
  if (demand.request.gpu_percent < 100) json["gpu_percent"] = demand.request.gpu_percent;
  return json;
}

Json ExecutorToJson(const Backend::ExecutorStatus& executor) {
  Json drain;
  if (executor.drain)
    drain = {{"since", FormatTime(executor.drain->since)},
             {"reason", executor.drain->reason},
             {"now", executor.drain->now}};
  Json aside;
  if (executor.aside)
    aside = {{"until", FormatTime(executor.aside->until)}, {"reason", executor.aside->reason}};
  const auto known = [](int64_t bytes) { return bytes > 0 ? Json(bytes) : Json(); };
  Json running = Json::array();
  for (const auto& part : executor.running)
    running.push_back({{"sweep", ToString(part.attempt.trial.sweep)},
                       {"trial", part.attempt.trial.number.value},
                       {"attempt", part.attempt.number},
                       {"ranks", {part.first_rank, part.last_rank}}});
  return {{"name", executor.name},
          {"state", executor.state},
          {"address", executor.address},
          {"labels", executor.labels},
          {"cpus", executor.total.cpus},
          {"cpus_free", executor.free.cpus},
          {"gpus", executor.total.gpus},
          {"gpus_free", executor.free.gpus},
          {"memory_bytes", executor.total.memory_bytes},
          {"memory_free", executor.free.memory_bytes},
          {"running", std::move(running)},
          {"drain", std::move(drain)},
          {"problem", executor.problem.empty() ? Json() : Json(executor.problem)},
          {"set_aside", std::move(aside)},
          {"disk_free_bytes", known(executor.disk_free_bytes)},
          {"memory_available_bytes", known(executor.memory_free_bytes)},
          {"silent_seconds", executor.silent_seconds ? Json(*executor.silent_seconds) : Json()}};
}

}  // namespace attune::server
