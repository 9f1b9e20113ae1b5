#include "server/http/replay.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "server/http/answers.h"
#include "server/http/problem.h"
#include "server/http/query.h"
#include "simulator/replay.h"
#include "sweepfile/codec.h"
#include "sweepfile/sweepfile.h"

namespace attune::server {
namespace {

using simulate::Recording;
using simulate::Replay;
using simulate::Summary;

constexpr double kSecondsPerHour = 3600;
constexpr TrialState kStates[] = {TrialState::kPending,   TrialState::kRunning, TrialState::kPaused,
                                  TrialState::kCompleted, TrialState::kStopped, TrialState::kFailed,
                                  TrialState::kKilled};

// The sweep's specification with what the body changes, which is not what its trials stand on.
sweepfile::Parsed Changed(const SweepSpec& spec, const std::string& body,
                          const Algorithms& algorithms) {
  auto parsed =
      sweepfile::PatchSweep(spec, body.empty() ? "{}" : body, {.algorithms = &algorithms});
  if (!parsed.spec) return parsed;
  SweepSpec rest = *parsed.spec;
  rest.scheduler = spec.scheduler;
  rest.max_step = spec.max_step;
  rest.stop = spec.stop;
  if (rest == spec) return parsed;
  return {
      .spec = {},
      .faults = {{.message = "only `scheduler`, `stop` and targets can be others than they were: "
                             "trials are what was recorded of them"}}};
}

Json BestToJson(const std::optional<Summary::Best>& best) {
  if (!best) return nullptr;
  return {{"trial", best->trial.value}, {"step", best->step.value}, {"value", best->value}};
}

// How much worse the best of a course is than the best that was recorded.
Json RegretOf(const std::optional<Summary::Best>& best, const Summary& recorded) {
  if (!best) return nullptr;
  return std::abs(best->value - recorded.best->value);
}

Json CourseToJson(const Summary& summary, const std::map<TrialState, int>& trials,
                  const SweepSpec& spec) {
  const double hours = summary.slot_seconds / kSecondsPerHour;
  Json counts = Json::object();
  for (const TrialState state : kStates) {
    const auto found = trials.find(state);
    counts[std::string(Name(state))] = found == trials.end() ? 0 : found->second;
  }
  return {{"slot_hours", hours},
          {"cpu_hours", hours * spec.gang.per_worker.cpus},
          {"gpu_hours", hours * GpusPerWorker(spec.gang)},
          {"wall_seconds", summary.wall.value},
          {"peak_slots", summary.peak_slots},
          {"steps", summary.steps},
          {"trials", std::move(counts)},
          {"best", BestToJson(summary.best)}};
}

Json CourseToJson(const Replay::Course& course, const Recording& recording) {
  std::map<TrialState, int> trials;
  for (const Replay::Trial& trial : course.trials) ++trials[trial.state];
  Json json = CourseToJson(course.summary, trials, recording.spec());
  const Summary& recorded = recording.summary();
  json["regret"] = RegretOf(course.summary.best, recorded);
  const Recording::Trial& winner = recording.trials()[recorded.best->trial.value];
  json["keeps_winner"] = winner.curve.contains(recorded.best->step) &&
                         course.trials[recorded.best->trial.value].step >= recorded.best->step;
  json["reason"] = course.summary.reason;
  return json;
}

Json EndToJson(const Replay::Trial& trial) {
  return {{"state", Name(trial.state)}, {"step", trial.step.value}, {"reason", trial.reason}};
}

Json TrialsToJson(const Replay& replay, const Recording& recording) {
  Json list = Json::array();
  for (size_t i = 0; i < recording.trials().size(); ++i) {
    const Recording::Trial& trial = recording.trials()[i];
    const Step last = trial.curve.empty() ? Step(0) : trial.curve.rbegin()->first;
    list.push_back({{"number", i},
                    {"unknown", replay.Unknown(TrialNumber(static_cast<uint32_t>(i)))},
                    {"recorded", {{"state", Name(trial.state)}, {"step", last.value}}},
                    {"if_worst", EndToJson(replay.if_worst.trials[i])},
                    {"if_best", EndToJson(replay.if_best.trials[i])}});
  }
  return list;
}

Json ReplayToJson(SweepId sweep, const Recording& recording, const Replay& replay,
                  const SweepSpec& spec, int slots) {
  const Json file = sweepfile::ToJson(spec);
  const Json recorded_file = sweepfile::ToJson(recording.spec());
  std::map<TrialState, int> trials;
  for (const Recording::Trial& trial : recording.trials()) ++trials[trial.state];
  Json list = TrialsToJson(replay, recording);
  const auto unknown = std::ranges::count_if(
      list, [](const Json& trial) { return trial.at("unknown").get<bool>(); });
  return {{"sweep", ToString(sweep)},
          {"metric", spec.objective().metric},
          {"slots", slots},
          {"scheduler", file.at("scheduler")},
          {"stop", file.at("stop")},
          {"recorded_scheduler", recorded_file.at("scheduler")},
          {"start_seconds", recording.Start().value},
          {"unknown", unknown},
          {"recorded", CourseToJson(recording.summary(), trials, recording.spec())},
          {"if_worst", CourseToJson(replay.if_worst, recording)},
          {"if_best", CourseToJson(replay.if_best, recording)},
          {"trials", std::move(list)}};
}

}  // namespace

Response Replays::ReplaySweep(const Request& request, const Target& target) {
  const auto asked = IntegerQuery(request, "slots", 0, 1, kReplaySlotsMax);
  if (!asked.ok()) return Problem(asked.error());
  const auto sweep = reader_.Sweep(target.sweep());
  if (!sweep.ok()) return Problem(sweep.error());
  const auto changed = Changed(sweep->spec, request.body, algorithms_);
  if (!changed.spec) return Refuse(changed.faults);

  const std::unique_lock alone(one_at_a_time_, std::try_to_lock);
  if (!alone.owns_lock())
    return Problem(Error{ErrorCode::kUnavailable, "another sweep is being replayed; ask again"});
  Recording recording(sweep->spec, changed.spec->ReportedMetrics());
  const Status read = reader_.Events(target.sweep(), [&](const Event& event) {
    recording.Observe(event);
    return recording.reports() <= kReplayReportsMax;
  });
  if (!read.ok()) return Problem(read.error());
  if (recording.reports() > kReplayReportsMax)
    return Problem(422, "sweep " + ToString(sweep->id) + " has more than " +
                            std::to_string(kReplayReportsMax) +
                            " reports, which takes too long here; export them with `attune db "
                            "export --what reports`, for `attune simulate --curves`");
  // A gang that is elastic may have run with fewer.
  const int slots = *asked > 0 ? static_cast<int>(*asked)
                               : std::max(recording.summary().peak_slots, sweep->spec.gang.workers);
  const auto until = std::chrono::steady_clock::now() + kReplayTime;
  const auto replay = simulate::ReplayUnder(recording, *changed.spec, algorithms_, slots, [until] {
    return std::chrono::steady_clock::now() > until;
  });
  if (!replay.ok()) return ProblemOfBody(replay.error());
  return JsonAnswer(ReplayToJson(sweep->id, recording, *replay, *changed.spec, slots));
}

}  // namespace attune::server
