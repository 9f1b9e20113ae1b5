#include "schedulers/pbt_replay.h"

#include <iterator>
#include <string>
#include <utility>

#include "base/result.h"
#include "schedulers/explore.h"
#include "schedulers/text.h"

namespace attune::schedulers {
namespace {

constexpr std::string_view kPbtReplay = "pbt_replay";

Result<ConfigSchedule> ScheduleOf(const SweepSpec& spec) {
  auto schedule =
      ParseSchedule(std::get<std::string>(spec.scheduler.options.at("schedule")), spec.space);
  if (!schedule.ok())
    return Error{ErrorCode::kInvalid, "scheduler.schedule: " + schedule.error().message};
  return schedule;
}

Result<std::unique_ptr<Scheduler>> MakePbtReplay(const SweepSpec& spec) {
  auto schedule = ScheduleOf(spec);
  if (!schedule.ok()) return schedule.error();
  return {std::make_unique<PbtReplay>(*std::move(schedule))};
}

}  // namespace

const Config* PbtReplay::ConfigAt(Step step) const {
  const auto after = schedule_.upper_bound(step);
  return after == schedule_.begin() ? nullptr : &std::prev(after)->second;
}

Verdict PbtReplay::Judge(const TrialView& trial, const Report& report) const {
  Reason reason{.rule = std::string(kPbtReplay), .step = report.step};
  const Config* config = ConfigAt(report.step);
  if (config == nullptr || *config == trial.config) {
    reason.text = "continues at step " + Text(report.step) + ": its schedule changes nothing there";
    return Verdict::Continue(std::move(reason));
  }
  reason.text = "paused at step " + Text(report.step) + ": its schedule changes " +
                DescribeChanges(trial.config, *config);
  return Verdict::Pause(std::move(reason));
}

std::optional<Step> PbtReplay::NextMilestone(const TrialView&, Step after) const {
  const auto next = schedule_.upper_bound(after);
  if (next == schedule_.end()) return std::nullopt;
  return next->first;
}

NextMove PbtReplay::Next(const SweepView& sweep) const {
  if (sweep.paused.empty()) return StartNew{};
  const auto& [trial, step] = *sweep.paused.begin();
  Promote promote{.trial = trial,
                  .reason = {.rule = std::string(kPbtReplay),
                             .step = step,
                             .text = "continues at step " + Text(step) +
                                     " with the configuration of its schedule"}};
  if (const Config* config = ConfigAt(step)) promote.config = *config;
  return promote;
}

// The brain adapts to checked specifications only.
void PbtReplay::Adapt(const SweepSpec& spec) { schedule_ = ScheduleOf(spec).value(); }

Entry<Scheduler> PbtReplayEntry() {
  return {
      .name = std::string(kPbtReplay),
      .help =
          "Changes the configuration of each trial at the steps of a schedule; `attune trial "
          "schedule` writes one",
      .options = {{.name = "schedule",
                   .fallback = std::string(),
                   .required = true,
                   .help =
                       "Steps and the configurations that start there: `8: lr=0.12; 16: lr=0.1`"}},
      .make = MakePbtReplay};
}

}  // namespace attune::schedulers
