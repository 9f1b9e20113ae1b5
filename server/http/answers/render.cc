#include "server/http/answers/render.h"

#include <algorithm>
#include <utility>

#include "core/state/placement.h"
#include "json/parse.h"
#include "server/store/format_time.h"
#include "sweepfile/codec.h"

namespace attune::server {
namespace {

using rest::Json;

std::optional<rest::Real> RenderReal(const std::optional<double>& value) {
  if (value) return *value;
  return std::nullopt;
}

std::map<std::string, rest::Real> RenderMetrics(const Metrics& metrics) {
  return {metrics.begin(), metrics.end()};
}

rest::Checkpoint RenderFiles(const CheckpointRow& row) {
  return {.step = row.step.value,
          .attempt = row.attempt,
          .path = row.path,
          .digest = row.digest,
          .bytes = row.bytes,
          .time = row.time,
          .pinned = row.pinned};
}

std::optional<rest::Rationale> RenderRationale(const std::optional<Rationale>& rationale) {
  if (!rationale) return std::nullopt;
  rest::Rationale rendered{.rule = rationale->rule,
                           .results = rationale->results,
                           .score = RenderReal(rationale->score),
                           .text = rationale->text};
  for (const TrialNumber trial : rationale->from) rendered.from.push_back(trial.value);
  return rendered;
}

rest::Best RenderBest(const BestTrial& best) {
  return {.trial = best.trial.value,
          .step = best.step.value,
          .value = best.values.front(),
          .values = best.values,
          .config = sweepfile::ToJson(best.config),
          .metrics = RenderMetrics(best.metrics),
          .checkpoint = best.checkpoint,
          .checkpoint_step = best.checkpoint_step};
}

rest::Metric RenderMetric(const Objective& objective) {
  return {.name = objective.metric, .mode = std::string(Name(objective.mode))};
}

std::vector<rest::Objective> RenderObjectives(const SweepSpec& spec) {
  std::vector<rest::Objective> objectives;
  for (size_t i = 0; i < spec.objectives.size(); ++i) {
    const auto& targets = spec.stop.targets;
    objectives.push_back(
        {{RenderMetric(spec.objectives[i])}, i < targets.size() ? targets[i] : std::nullopt});
  }
  return objectives;
}

rest::Plateau RenderPlateau(const Plateau& plateau) {
  rest::Plateau rendered{.metric = plateau.metric.metric,
                         .mode = std::string(Name(plateau.metric.mode)),
                         .patience = plateau.patience,
                         .grace_period = plateau.grace_period.value};
  if (plateau.std) {
    rendered.std = *plateau.std;
  } else {
    rendered.min_delta = plateau.min_delta;
  }
  return rendered;
}

rest::Threshold RenderThreshold(const Threshold& threshold) {
  rest::Threshold rendered{.grace_period = threshold.grace_period.value};
  if (threshold.at_least) rendered.at_least = *threshold.at_least;
  if (threshold.at_most) rendered.at_most = *threshold.at_most;
  return rendered;
}

std::string ScaleName(Scale scale) { return scale == Scale::kLog ? "log" : "linear"; }

rest::Parameter RenderParameter(const Parameter& parameter) {
  rest::Parameter rendered{.name = parameter.name};
  const auto render_range = [&](const auto& domain) {
    rendered.min = Json(domain.min);
    rendered.max = Json(domain.max);
    rendered.scale = ScaleName(domain.scale);
  };
  if (const auto* real = std::get_if<FloatDomain>(&parameter.domain)) {
    rendered.type = "float";
    render_range(*real);
    if (real->step) rendered.step = Json(*real->step);
  } else if (const auto* integer = std::get_if<IntDomain>(&parameter.domain)) {
    rendered.type = "int";
    render_range(*integer);
    rendered.step = Json(integer->step);
  } else if (const auto* choice = std::get_if<CategoricalDomain>(&parameter.domain)) {
    rendered.type = "categorical";
    std::vector<Json>& values = rendered.values.emplace();
    for (const Value& value : choice->values) values.push_back(sweepfile::ToJson(value));
  } else {
    rendered.type = "constant";
    rendered.value = sweepfile::ToJson(std::get<ConstantDomain>(parameter.domain).value);
  }
  return rendered;
}

rest::Attempt RenderAttempt(const AttemptRow& row) {
  rest::Attempt attempt{.number = row.number,
                        .epoch = static_cast<int64_t>(row.epoch),
                        .state = row.state,
                        .outcome = row.outcome,
                        .failure = row.failure,
                        .executor = row.executor,
                        .resumed_from = row.resumed_from,
                        .pids = row.pids,
                        .decided = row.decided,
                        .started = row.started,
                        .first_step = row.first_step,
                        .ended = row.ended};
  for (const RankSlot& slot : row.ranks) {
    rest::Rank& rank = attempt.ranks.emplace_back();
    rank = {.rank = std::ssize(attempt.ranks) - 1,
            .executor = slot.executor,
            .local_rank = slot.local_rank,
            .cpus = slot.cpus,
            .gpus = {slot.gpus.begin(), slot.gpus.end()}};
    if (slot.gpu_percent < 100) rank.gpu_percent = slot.gpu_percent;
  }
  return attempt;
}

rest::Decision RenderDecision(const DecisionRow& row) {
  return {.time = row.time,
          .attempt = row.attempt,
          .step = row.step.value,
          .verdict = row.verdict,
          .reason = row.reason,
          .rule = row.rule,
          .rung = row.rung.value,
          .value = RenderReal(row.value),
          .cutoff = RenderReal(row.cutoff),
          .rank = row.rank,
          .peers = row.peers,
          .policy = static_cast<int64_t>(row.policy)};
}

std::optional<int64_t> KnownBytes(int64_t bytes) {
  if (bytes > 0) return bytes;
  return std::nullopt;
}

}  // namespace

std::vector<int64_t> RenderSteps(const std::vector<Step>& steps) {
  std::vector<int64_t> rendered;
  for (const Step step : steps) rendered.push_back(step.value);
  return rendered;
}

rest::TrialCounts RenderCounts(const std::map<std::string, int64_t, std::less<>>& counts) {
  const auto count = [&](TrialState state) {
    const auto found = counts.find(Name(state));
    return found == counts.end() ? 0 : found->second;
  };
  using enum TrialState;
  return {.pending = count(kPending),
          .running = count(kRunning),
          .paused = count(kPaused),
          .completed = count(kCompleted),
          .stopped = count(kStopped),
          .failed = count(kFailed),
          .killed = count(kKilled)};
}

rest::Limits RenderLimits(const StopPolicy& stop) {
  rest::Limits limits{
      .target = stop.targets.empty() ? std::nullopt : stop.targets.front(),
      .max_time = stop.max_time.value,
      .max_gpu_hours = stop.max_gpu_hours,
      .patience = stop.patience,
      .max_trial_time = stop.max_trial_time.value,
      .trial_patience = stop.trial_patience,
  };
  if (stop.plateau) limits.plateau = RenderPlateau(*stop.plateau);
  for (const Threshold& threshold : stop.thresholds)
    limits.threshold[threshold.metric] = RenderThreshold(threshold);
  return limits;
}

std::optional<rest::ScheduledDeletion> RenderDeletion(const State& state, SweepId sweep, Time now) {
  const auto deletion = state.deletions.find(sweep);
  if (deletion == state.deletions.end()) return std::nullopt;
  const Time at = ShownTime(state, deletion->second.at);
  return rest::ScheduledDeletion{
      .time = FormatTime(at),
      .actor = deletion->second.requester,
      .seconds_left = std::max(0.0, static_cast<double>(at.us - now.us) / 1e6)};
}

rest::Sweep RenderSweep(const SweepRow& row, const std::vector<Step>& rungs,
                        const LiveSweep& live) {
  const SweepSpec& spec = row.spec;
  rest::Sweep sweep{
      .id = ToString(row.id),
      .name = spec.name,
      .tags = row.tags,
      .owner = row.owner,
      .state = row.state,
      .reason = row.reason,
      .created = row.created,
      .ended = row.ended,
      .metric = RenderMetric(spec.objective()),
      .metrics = RenderObjectives(spec),
      .searcher = spec.searcher.name,
      .warm_start = row.warm_start,
      .scheduler = spec.scheduler.name,
      .rungs = RenderSteps(rungs),
      .time_attr = spec.time_attr,
      .max_step = spec.max_step.value,
      .max_trials = spec.stop.max_trials,
      .workers = spec.gang.workers,
      .min_workers = MinWorkers(spec.gang),
      .priority = spec.priority,
      .max_concurrent_trials = spec.max_concurrent_trials,
      .external = spec.External(),
      .limits = RenderLimits(spec.stop),
      .trials = RenderCounts(row.trials),
      .logged_metrics = row.logged,
      .waiting_reason = live.waiting_reason,
      .end_state = live.end_state,
      .deletion = live.deletion,
      .damaged = row.damaged,
  };
  for (const Constraint& constraint : spec.constraints)
    sweep.constraints[constraint.metric] = {.min = constraint.min, .max = constraint.max};
  if (const BestTrial* best = row.Best()) sweep.best = RenderBest(*best);
  for (const BestTrial& report : row.front) sweep.pareto_front.push_back(RenderBest(report));
  if (const auto& code = spec.program.code)
    sweep.code = rest::SweepCode{code->digest, code->commit, code->dirty};
  if (row.edit)
    sweep.edited = {.time = row.edit->time, .actor = row.edit->actor, .changes = row.edit->changes};
  return sweep;
}

rest::SweepDetail RenderDetail(const SweepRow& row, const std::vector<Step>& rungs,
                               const LiveSweep& live, Reader::SweepFile file) {
  rest::SweepDetail detail{{RenderSweep(row, rungs, live)}, row.note};
  detail.file = std::move(file.text);
  detail.path = std::move(file.path);
  for (const Parameter& parameter : row.spec.space.parameters())
    detail.parameters.push_back(RenderParameter(parameter));
  return detail;
}

rest::Trial RenderTrial(const TrialRow& row, const std::string& waiting_reason) {
  return {.sweep = ToString(row.id.sweep),
          .number = row.id.number.value,
          .state = row.state,
          .reason = row.reason,
          .tags = row.tags,
          .config = sweepfile::ToJson(row.config),
          .origin = row.origin,
          .created = row.created,
          .ended = row.ended,
          .attempt_count = row.attempts,
          .step = row.step.value,
          .milestone = row.milestone.value,
          .seconds = row.seconds.value,
          .metrics = RenderMetrics(row.metrics),
          .best = RenderReal(row.best),
          .checkpoint = row.checkpoint,
          .waiting_reason = waiting_reason,
          .damaged = row.damaged};
}

rest::TrialDetail RenderDetail(const TrialDetail& detail, const SweepSpec& spec,
                               const std::string& waiting_reason) {
  const std::optional<TrialPatch>& patch = detail.trial.patch;
  rest::TrialDetail trial{{RenderTrial(detail.trial, waiting_reason)},
                          detail.trial.note,
                          RenderRationale(detail.trial.rationale),
                          patch ? patch->code : CodeDigestOf(spec, detail.trial.config),
                          patch ? patch->sha256 : ""};
  for (const ReportRow& row : detail.history)
    trial.history.push_back({.step = row.report.step.value,
                             .time = FormatTime(row.time),
                             .attempt = row.attempt,
                             .seconds = row.report.seconds.value,
                             .metrics = RenderMetrics(row.report.metrics)});
  for (const AttemptRow& attempt : detail.attempts)
    trial.attempts.push_back(RenderAttempt(attempt));
  for (const DecisionRow& decision : detail.decisions)
    trial.decisions.push_back(RenderDecision(decision));
  for (const CheckpointRow& row : detail.checkpoints)
    trial.checkpoints.push_back({{RenderFiles(row)}, row.dropped, row.reason});
  return trial;
}

rest::SweepCheckpoint RenderCheckpoint(SweepId sweep, const KeptRow& row, const StoredCopy& copy) {
  rest::SweepCheckpoint rendered{
      {RenderFiles(row.checkpoint)}, ToString(sweep), row.trial.value, row.executor,
      RenderReal(row.best),          copy.exists};
  if (!copy.url.empty()) rendered.stored_url = copy.url;
  return rendered;
}

rest::CheckpointDetail RenderCheckpointDetail(SweepId sweep, const KeptRow& row,
                                              const StoredCopy& copy) {
  return {{RenderCheckpoint(sweep, row, copy)}, row.checkpoint.dropped, row.checkpoint.reason};
}

rest::Explanation RenderExplanation(const TrialRow& trial,
                                    const std::optional<Explanation>& explanation) {
  rest::Explanation rendered{.origin = trial.origin, .rationale = RenderRationale(trial.rationale)};
  if (!explanation) return rendered;
  rendered.decision = RenderDecision(explanation->decision);
  rendered.policy = ParseJsonOrThrow<Json>(explanation->policy);
  rendered.policy_changed = explanation->policy_changed;
  for (const RungRow& row : explanation->rung)
    rendered.rung_trials.push_back(
        {.number = row.trial.value, .value = RenderReal(row.value), .verdict = row.verdict});
  return rendered;
}

rest::LoggedPoint RenderLogged(const LoggedRow& row) {
  return {.seq = static_cast<int64_t>(row.seq.value),
          .time = FormatTime(row.time),
          .attempt = row.attempt,
          .step = row.step,
          .metrics = RenderMetrics(row.metrics)};
}

rest::AttemptEnvironment RenderEnvironment(const AttemptEnvironment& environment) {
  rest::AttemptEnvironment rendered{.attempt = environment.attempt};
  for (const EnvironmentRow& row : environment.executors) {
    auto record = rest::Parse<rest::EnvironmentRecord>(ParseJson<Json>(row.record));
    if (!record.ok()) continue;
    rendered.executors.push_back(
        {.executor = row.executor, .recorded = row.recorded, .record = *std::move(record)});
  }
  return rendered;
}

rest::Demand RenderDemand(const Demand& demand) {
  const Resources& worker = demand.request.per_worker;
  rest::Demand rendered{.sweep = ToString(demand.sweep),
                        .gangs = demand.gangs,
                        .workers = demand.request.max_workers,
                        .min_workers = demand.request.min_workers,
                        .cpus_per_worker = worker.cpus,
                        .gpus_per_worker = worker.gpus,
                        .memory_per_worker = worker.memory_bytes,
                        .requires_ = sweepfile::ToJson(demand.request.required),
                        .reason = demand.reason,
                        .can_start = demand.can_start};
  if (demand.request.gpu_percent < 100) rendered.gpu_percent = demand.request.gpu_percent;
  return rendered;
}

rest::Executor RenderExecutor(const Backend::ExecutorStatus& status) {
  rest::Executor executor{
      .name = status.name,
      .state = status.state,
      .address = status.address,
      .labels = {status.labels.begin(), status.labels.end()},
      .cpus = status.total.cpus,
      .cpus_free = status.free.cpus,
      .gpus = status.total.gpus,
      .gpus_free = status.free.gpus,
      .memory_bytes = status.total.memory_bytes,
      .memory_free_bytes = status.free.memory_bytes,
      .disk_free_bytes = KnownBytes(status.disk_free_bytes),
      .memory_available_bytes = KnownBytes(status.memory_free_bytes),
      .seconds_since_heartbeat = status.silent_seconds,
  };
  for (const auto& part : status.running)
    executor.running.push_back({.sweep = ToString(part.attempt.trial.sweep),
                                .trial = part.attempt.trial.number.value,
                                .attempt = part.attempt.number,
                                .ranks = {part.first_rank, part.last_rank}});
  if (status.drain)
    executor.drain = {.since = FormatTime(status.drain->since),
                      .reason = status.drain->reason,
                      .now = status.drain->now};
  if (!status.problem.empty()) executor.health_problem = status.problem;
  executor.storage_problem = status.storage_problem;
  if (status.quarantine)
    executor.quarantine = {.until = FormatTime(status.quarantine->until),
                           .reason = status.quarantine->reason};
  return executor;
}

}  // namespace attune::server
