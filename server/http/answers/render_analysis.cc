#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/log/sweep_spec.h"
#include "server/http/answers/render.h"
#include "server/store/format_time.h"
#include "server/store/json.h"

// The part of render.h about many trials together: analyses, curves and the use of slots.
namespace attune::server {
namespace {

using rest::Json;

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

rest::FailedAttempt RenderFailedAttempt(const FailedAttempt& attempt) {
  return {.trial = attempt.attempt.trial.number.value,
          .attempt = attempt.attempt.number,
          .rank = attempt.rank,
          .executor = attempt.executor,
          .kind = attempt.kind,
          .failure = attempt.failure,
          .time = attempt.time};
}

}  // namespace

rest::Importance RenderImportance(const Objective& metric, Step step,
                                  const Importances& importances) {
  rest::Importance rendered{.metric = metric.metric,
                            .mode = std::string(Name(metric.mode)),
                            .step = step.value,
                            .trials = importances.trials,
                            .best = importances.best,
                            .reason = importances.reason};
  for (const auto& [parameter, share, low, high] : importances.parameters)
    rendered.parameters.push_back(
        {.name = parameter, .importance = share, .low = low, .high = high});
  return rendered;
}

rest::Failures RenderFailures(const Failures& failures) {
  rest::Failures rendered{
      .attempts = failures.attempts, .trials = failures.trials, .ungrouped = failures.ungrouped};
  if (failures.first) rendered.first = RenderFailedAttempt(*failures.first);
  for (const FailureGroup& group : failures.groups) {
    rest::FailureGroup& made =
        rendered.groups.emplace_back(rest::FailureGroup{.kind = group.kind,
                                                        .pattern = group.pattern,
                                                        .attempts = group.attempts,
                                                        .trials = group.trials,
                                                        .first = RenderFailedAttempt(group.first),
                                                        .last = group.last});
    for (const TrialNumber trial : group.some_trials) made.some_trials.push_back(trial.value);
  }
  return rendered;
}

rest::UserAction RenderUserAction(const UserAction& action) {
  rest::UserAction rendered{.seq = static_cast<int64_t>(action.seq.value),
                            .time = action.time,
                            .actor = action.actor,
                            .action = action.name,
                            .detail = action.detail};
  if (action.trial) rendered.trial = action.trial->value;
  return rendered;
}

rest::Branch RenderBranch(const Branch& branch) {
  rest::Branch rendered{.trial = branch.trial.value, .step = branch.step.value};
  if (branch.donor) rendered.donor = branch.donor->value;
  return rendered;
}

std::string CurvesToText(const std::string& metric, const Curves& curves,
                         const std::string& next_page_token) {
  std::string text = "{\"metric\":" + Dump(Json(metric)) +
                     ",\"seq\":" + std::to_string(curves.seq.value) +
                     ",\"next_page_token\":" + Dump(Json(next_page_token)) + ",\"trials\":";
  AppendList(text, curves.trials, [&](const Curve& curve) {
    text += "{\"number\":" + std::to_string(curve.trial.value) + ",\"steps\":";
    AppendList(text, curve.steps, [&](int64_t step) { text += std::to_string(step); });
    text += ",\"values\":";
    AppendReals(text, curve.values);
    text += ",\"segments\":";
    AppendList(text, curve.segments, [&](const CurveSegment& segment) {
      text += "{\"attempt\":" + std::to_string(segment.attempt) +
              ",\"first_step\":" + std::to_string(segment.first_step.value) + '}';
    });
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

rest::SweepCost RenderCost(SweepId sweep, const SweepCost& cost,
                           const std::optional<GpuHourPrice>& price, Time now) {
  rest::SweepCost rendered{.sweep = ToString(sweep),
                           .time = FormatTime(now),
                           .resource = cost.has_gpus ? "gpu" : "worker",
                           .used_hours = cost.used_hours,
                           .wasted_hours = cost.wasted_hours,
                           .saved_hours = cost.saved_hours,
                           .attempts = cost.attempts,
                           .running = cost.running,
                           .broken = cost.broken,
                           .stopped = cost.stopped};
  if (!price || !cost.has_gpus) return rendered;
  rendered.price = {.gpu_hour = price->amount,
                    .currency = price->currency,
                    .used = price->amount * cost.used_hours,
                    .wasted = price->amount * cost.wasted_hours};
  if (cost.saved_hours) rendered.price->saved = price->amount * *cost.saved_hours;
  return rendered;
}

rest::HeldAttempt RenderHeld(const HeldRow& row) {
  rest::HeldAttempt held{.sweep = ToString(row.attempt.trial.sweep),
                         .sweep_name = row.sweep_name,
                         .trial = row.attempt.trial.number.value,
                         .attempt = row.attempt.number,
                         .outcome = row.outcome,
                         .begin = FormatTime(row.begin)};
  if (row.end) held.end = FormatTime(*row.end);
  for (const auto& [rank, slot] : row.ranks) {
    rest::HeldRank& rendered = held.ranks.emplace_back();
    rendered.rank = rank;
    rendered.executor = slot.executor;
    rendered.cpus = slot.cpus;
    rendered.gpus.assign(slot.gpus.begin(), slot.gpus.end());
    if (slot.gpu_percent < 100) rendered.gpu_percent = slot.gpu_percent;
  }
  return held;
}

rest::QueuedGang RenderQueued(const QueuedGang& gang, const Sweep& sweep, size_t place, Time now) {
  rest::QueuedGang queued{.place = static_cast<int64_t>(place),
                          .sweep = ToString(gang.sweep),
                          .sweep_name = sweep.spec.name,
                          .owner = sweep.owner,
                          .gangs = gang.gangs,
                          .ready = gang.ready,
                          .priority = gang.priority,
                          .share = gang.share,
                          .sweep_share = gang.sweep_share,
                          .workers = sweep.spec.gang.workers,
                          .cpus_per_worker = sweep.spec.gang.per_worker.cpus,
                          .gpus_per_worker = GpusPerWorker(sweep.spec.gang),
                          .reason = gang.reason};
  if (gang.trial) queued.trial = gang.trial->value;
  if (gang.not_before > now) queued.not_before = FormatTime(gang.not_before);
  return queued;
}

}  // namespace attune::server
