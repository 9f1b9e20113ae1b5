#include "server/http/routes/sweeps/replay.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "server/http/answers/answers.h"
#include "server/http/answers/refusal.h"
#include "server/http/answers/render.h"
#include "server/http/routes/request/query.h"
#include "server/http/routes/sweeps/sweep_file.h"
#include "server/http/transport/problem.h"
#include "simulator/replay.h"
#include "simulator/simulation.h"
#include "sweepfile/codec.h"
#include "sweepfile/sweepfile.h"

namespace attune::server {
namespace {

using simulate::Recording;
using simulate::Replay;
using simulate::Summary;

constexpr double kSecondsPerHour = 3600;
constexpr double kStepSecondsMin = 1e-6;
constexpr double kStepSecondsMax = 1e6;

Error BusyError() {
  return {ErrorCode::kUnavailable, "another sweep is being simulated; try again in a moment"};
}

// Applies the body to the sweep's specification. Only changes that do not affect the recorded
// trials are allowed.
sweepfile::Parsed ApplyChanges(const SweepSpec& spec, const std::string& body,
                               const Algorithms& algorithms) {
  auto parsed =
      sweepfile::PatchSweep(spec, body.empty() ? "{}" : body, {.algorithms = &algorithms});
  if (!parsed.spec) return parsed;
  SweepSpec rest = *parsed.spec;
  rest.scheduler = spec.scheduler;
  rest.max_step = spec.max_step;
  rest.stop = spec.stop;
  if (rest == spec) return parsed;
  return {.spec = {},
          .faults = {{.message = "only `scheduler`, `stop` and targets can change, because a "
                                 "replay keeps the recorded trials"}}};
}

std::optional<rest::BestValue> RenderBest(const std::optional<Summary::Best>& best) {
  if (!best) return std::nullopt;
  return rest::BestValue{
      .trial = best->trial.value, .step = best->step.value, .value = best->value};
}

// The states of all trials of the recording or of a replay.
template <class T>
rest::TrialCounts CountStates(const std::vector<T>& trials) {
  std::map<std::string, int64_t, std::less<>> counts;
  for (const T& trial : trials) ++counts[std::string(Name(trial.state))];
  return RenderCounts(counts);
}

rest::TrialCounts CountStates(const Summary& summary) {
  std::map<std::string, int64_t, std::less<>> counts;
  for (size_t state = 0; state < summary.trials.size(); ++state)
    counts[std::string(Name(static_cast<TrialState>(state)))] = summary.trials[state];
  return RenderCounts(counts);
}

rest::Outcome RenderOutcome(const Summary& summary, rest::TrialCounts trials,
                            const SweepSpec& spec) {
  const double hours = summary.slot_seconds / kSecondsPerHour;
  return {.slot_hours = hours,
          .cpu_hours = hours * spec.gang.per_worker.cpus,
          .gpu_hours = hours * GpusPerWorker(spec.gang),
          .wall_seconds = summary.wall.value,
          .peak_slots = summary.peak_slots,
          .steps = summary.steps,
          .trials = trials,
          .best = RenderBest(summary.best)};
}

rest::ReplayedOutcome RenderOutcome(const Replay::Course& course, const Recording& recording) {
  rest::ReplayedOutcome outcome{
      {RenderOutcome(course.summary, CountStates(course.trials), recording.spec())}};
  const Summary::Best& best = *recording.summary().best;
  if (course.summary.best) outcome.regret = std::abs(course.summary.best->value - best.value);
  outcome.keeps_best_trial = recording.trials()[best.trial.value].curve.contains(best.step) &&
                             course.trials[best.trial.value].step >= best.step;
  outcome.reason = course.summary.reason;
  return outcome;
}

rest::TrialEnd RenderEnd(const Replay::Trial& trial) {
  return {{.state = std::string(Name(trial.state)), .step = trial.step.value}, trial.reason};
}

std::vector<rest::ReplayedTrial> RenderTrials(const Replay& replay, const Recording& recording) {
  std::vector<rest::ReplayedTrial> list;
  for (size_t i = 0; i < recording.trials().size(); ++i) {
    const Recording::Trial& trial = recording.trials()[i];
    const Step last = trial.curve.empty() ? Step(0) : trial.curve.rbegin()->first;
    list.push_back({.number = static_cast<int64_t>(i),
                    .unknown = replay.IsUnknown(TrialNumber(static_cast<uint32_t>(i))),
                    .recorded = {.state = std::string(Name(trial.state)), .step = last.value},
                    .worst_case = RenderEnd(replay.if_worst.trials[i]),
                    .best_case = RenderEnd(replay.if_best.trials[i])});
  }
  return list;
}

rest::Replay RenderReplay(SweepId sweep, const Recording& recording, const Replay& replay,
                          const SweepSpec& spec, int slots) {
  const Json file = sweepfile::ToJson(spec);
  rest::Replay rendered{.sweep = ToString(sweep),
                        .metric = spec.objective().metric,
                        .slots = slots,
                        .scheduler = file.at("scheduler"),
                        .stop = file.at("stop"),
                        .recorded_scheduler = sweepfile::ToJson(recording.spec()).at("scheduler"),
                        .start_seconds = recording.StartupTime().value,
                        .recorded = RenderOutcome(
                            recording.summary(), CountStates(recording.trials()), recording.spec()),
                        .worst_case = RenderOutcome(replay.if_worst, recording),
                        .best_case = RenderOutcome(replay.if_best, recording),
                        .trials = RenderTrials(replay, recording)};
  rendered.unknown = std::ranges::count_if(rendered.trials, &rest::ReplayedTrial::unknown);
  return rendered;
}

}  // namespace

Response Replays::ReplaySweep(const Request& request, const Target& target) {
  const auto asked = IntegerQuery(request, "slots", 0, 1, kReplaySlotsMax);
  if (!asked.ok()) return Problem(asked.error());
  const auto sweep = reader_.Sweep(target.sweep());
  if (!sweep.ok()) return Problem(sweep.error());
  const auto changed = ApplyChanges(sweep->spec, request.body, algorithms_);
  if (!changed.spec) return Refuse(changed.faults);

  const std::unique_lock alone(one_at_a_time_, std::try_to_lock);
  if (!alone.owns_lock()) return Problem(BusyError());
  Recording recording(sweep->spec, changed.spec->ReportedMetrics());
  const Status read = reader_.Events(target.sweep(), [&](const Event& event) {
    recording.Observe(event);
    return recording.reports() <= kReplayReportsMax;
  });
  if (!read.ok()) return Problem(read.error());
  if (recording.reports() > kReplayReportsMax)
    return Problem(rest::ProblemType::kReplayTooLarge,
                   "sweep " + ToString(sweep->id) + " has more than " +
                       std::to_string(kReplayReportsMax) +
                       " reports, which takes too long here; export them with `attune db "
                       "export --what reports`, then use `attune simulate --curves`");
  // An elastic gang may have run with fewer workers than it can use.
  const int slots = *asked > 0 ? static_cast<int>(*asked)
                               : std::max(recording.summary().peak_slots, sweep->spec.gang.workers);
  const auto until = std::chrono::steady_clock::now() + kReplayTime;
  const auto replay = simulate::ReplayUnder(recording, *changed.spec, algorithms_, slots, [until] {
    return std::chrono::steady_clock::now() > until;
  });
  if (!replay.ok()) return ProblemOfBody(replay.error());
  return Render(RenderReplay(sweep->id, recording, *replay, *changed.spec, slots));
}

Response Replays::SimulateSweep(const Request& request, const Target&) {
  const auto slots = IntegerQuery(request, "slots", kSimulatedSlotsDefault, 1, kReplaySlotsMax);
  if (!slots.ok()) return Problem(slots.error());
  const auto step = NumberQuery(request, "step_seconds", 1, kStepSecondsMin, kStepSecondsMax);
  if (!step.ok()) return Problem(step.error());
  if (const Status absolute = CheckDirectory(request); !absolute.ok())
    return Problem(absolute.error());
  const auto parsed = ParseSweepFile(request, algorithms_);
  if (!parsed.spec) return Refuse(parsed.faults);
  const SweepSpec& spec = *parsed.spec;
  const auto curves =
      simulate::MakeCurves("power-law", spec.objective(), spec.space, spec.max_step, spec.seed);
  if (!curves.ok()) return Problem(curves.error());

  const std::unique_lock alone(one_at_a_time_, std::try_to_lock);
  if (!alone.owns_lock()) return Problem(BusyError());
  const auto until = std::chrono::steady_clock::now() + kReplayTime;
  const auto summary = simulate::Simulate(
      spec, algorithms_, **curves,
      {.slots = static_cast<int>(*slots),
       .step = Seconds(*step),
       .max_reports = kReplayReportsMax,
       .is_cancelled = [until] { return std::chrono::steady_clock::now() > until; }});
  if (!summary.ok()) return ProblemOfBody(summary.error());
  rest::SimulatedOutcome outcome{{RenderOutcome(*summary, CountStates(*summary), spec)}};
  outcome.slots = *slots;
  outcome.reason = summary->reason;
  return Render(outcome);
}

}  // namespace attune::server
