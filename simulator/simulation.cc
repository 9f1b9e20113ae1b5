#include "simulator/simulation.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "core/brain/brain.h"
#include "core/log/joining.h"
#include "simulator/timeline.h"
#include "simulator/worker.h"

namespace attune::simulate {
namespace {

constexpr int64_t kMaxGpus = 1'000'000;

constexpr int64_t kActionsPerCancelCheck = 1'000;

// The number of slots of one executor; `executor` counts from 0.
int SlotsOf(const Assumptions& assumed, int executor) {
  const int base = assumed.slots / assumed.executors;
  return base + (executor < assumed.slots % assumed.executors ? 1 : 0);
}

Status CheckCanRun(const SweepSpec& spec, const Curves& curves, const Assumptions& assumed) {
  if (!spec.warm_start.empty())
    return Invalid(
        "warm_start: a simulation cannot read earlier sweeps, which a server stores; remove the "
        "key");
  if (spec.External())
    return Invalid(
        "the sweep has no `command`: the program that asks for its trials decides when they run, "
        "so "
        "there is nothing to simulate");
  if (spec.ReportedMetrics().size() > 1 && curves.MetricsAt(TrialNumber(0), Step(1)).empty())
    return Invalid(
        "simulated trials report one metric, but the sweep needs several for its objectives, "
        "constraints or limits; simulate it with `metric` alone");
  const int largest = SlotsOf(assumed, 0);
  if (MinWorkers(spec.gang) > largest)
    return Invalid("resources.workers: a trial has " + std::to_string(MinWorkers(spec.gang)) +
                   " workers, and an executor has " + std::to_string(largest) +
                   " slots; a trial runs on one executor, so give it more slots");
  if (largest > kExecutorCpusMax)
    return Invalid("an executor has at most " + std::to_string(kExecutorCpusMax) + " slots");
  const int64_t gpus = int64_t{assumed.slots} * spec.gang.per_worker.gpus;
  if (gpus > kMaxGpus)
    return Invalid("the slots have " + std::to_string(gpus) +
                   " GPUs together, and a simulation has at most " + std::to_string(kMaxGpus) +
                   "; use fewer slots");
  if (spec.max_step.value == 0 && curves.LastStep(TrialNumber(0)).value == 0)
    return Invalid(
        "scheduler.max is 0, so the program decides when a trial is complete, but these curves "
        "have no last step; set scheduler.max, or use recorded curves");
  return {};
}

// Returns the spec for simulated executors. Each slot is one CPU, so each rank asks for one CPU.
// Every simulated executor meets the other requirements of the gang.
SweepSpec WithOneCpuPerRank(SweepSpec spec) {
  spec.gang.per_worker.cpus = 1;
  spec.gang.per_worker.memory_bytes = 0;
  spec.gang.required.clear();
  return spec;
}

class Simulation {
 public:
  Simulation(SweepSpec spec, const Algorithms& algorithms, const Curves& curves,
             const Assumptions& assumed, const std::vector<Step>& rungs,
             const std::function<void(const Event&)>& observe)
      : spec_(std::move(spec)),
        curves_(curves),
        assumed_(assumed),
        brain_(algorithms, [](const std::string&) { return true; }),
        tally_(spec_, rungs),
        observe_(observe) {}

  Result<Summary> Run() {
    for (int i = 0; i < assumed_.executors; ++i) {
      const int slots = SlotsOf(assumed_, i);
      Execute(
          JoinExecutor{.name = "executor-" + std::to_string(i + 1),
                       .instance = "simulated",
                       .resources = {.cpus = slots, .gpus = slots * spec_.gang.per_worker.gpus}});
    }
    Execute(CreateSweep{.spec = spec_});
    Advance();
    for (int64_t action = 0; !tally_.over(); ++action) {
      if (assumed_.is_cancelled && action % kActionsPerCancelCheck == 0 && assumed_.is_cancelled())
        return Invalid("the simulation takes too long; use fewer trials or steps");
      if (spec_.stop.max_trials == 0 && tally_.summary().created > assumed_.endless_trials)
        return Invalid("the sweep has not ended after " + std::to_string(assumed_.endless_trials) +
                       " trials: set stop.max_trials");
      if (assumed_.max_reports > 0 && reports_ > assumed_.max_reports)
        return Invalid("trials would report more than " + std::to_string(assumed_.max_reports) +
                       " times together: lower scheduler.max");
      if (timeline_.empty())
        return Error{
            ErrorCode::kInternal,
            "the sweep has not ended, but nothing is left to run; please report this with the "
            "sweep file"};
      timeline_.RunNext();
    }
    return FullSummary();
  }

 private:
  struct Gang {
    AttemptId attempt;
    Worker worker;
    Seconds trained{0};
  };

  void Execute(const Command& command) {
    const auto events = brain_.Execute(command, timeline_.now());
    ATTUNE_CHECK(events.ok());
    HandleEvents(*events);
  }

  // Lets the brain make its decisions, and schedules its next turn at the time it asks for.
  void Advance() {
    HandleEvents(brain_.Advance(timeline_.now()));
    for (auto thoughts = brain_.Thoughts(); !thoughts.empty(); thoughts = brain_.Thoughts()) {
      for (const Thought& thought : thoughts) Execute(thought.Think());
      HandleEvents(brain_.Advance(timeline_.now()));
    }
    const auto due = brain_.Due(timeline_.now());
    if (!due || due == next_advance_) return;
    next_advance_ = due;
    timeline_.ScheduleAt(*due, [this, due] {
      if (next_advance_ != due) return;
      next_advance_.reset();
      Advance();
    });
  }

  void HandleEvents(const std::vector<Event>& events) {
    for (const Event& event : events) {
      tally_.Observe(event);
      if (observe_) observe_(event);
      if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact)) {
        const Step from = assigned->resume ? assigned->resume->step : Step(0);
        const Epoch epoch = assigned->epoch;
        gangs_[epoch] = {.attempt = assigned->attempt, .worker = Worker(from)};
        if (assumed_.startup.value == 0 && !OutcomeNow(gangs_[epoch])) {
          Train(epoch);
        } else {
          timeline_.ScheduleAfter(ToMicroseconds(assumed_.startup),
                                  [this, epoch] { FinishStartup(epoch); });
        }
      }
    }
  }

  void FinishStartup(Epoch epoch) {
    if (const auto outcome = OutcomeNow(gangs_.at(epoch))) {
      End(epoch, *outcome);
      Advance();
    } else {
      Train(epoch);
    }
  }

  Step NextReport(const Gang& gang) const {
    return curves_.NextReport(gang.attempt.trial.number, gang.worker.step());
  }

  // Trains the gang of this attempt until its next report.
  void Train(Epoch epoch) {
    Gang& gang = gangs_.at(epoch);
    const Seconds duration =
        curves_.SecondsOf(gang.attempt.trial.number, NextReport(gang)).value_or(assumed_.step);
    gang.trained.value += duration.value;
    timeline_.ScheduleAfter(ToMicroseconds(duration), [this, epoch] { FinishReport(epoch); });
  }

  void FinishReport(Epoch epoch) {
    ++reports_;
    Gang& gang = gangs_.at(epoch);
    const auto reported = gang.worker.Train(OrdersOf(gang), NextReport(gang));
    if (reported.checkpoint)
      Execute(RecordFact{
          epoch, CheckpointSaved{.attempt = gang.attempt, .checkpoint = {.step = reported.step}}});
    Report report{.step = reported.step, .seconds = gang.trained, .waits = reported.waits};
    report.metrics = curves_.MetricsAt(gang.attempt.trial.number, reported.step);
    report.metrics[spec_.objective().metric] = ValueOf(gang);
    Execute(RecordFact{epoch, TrialReported{gang.attempt, std::move(report)}});
    const TrialState state = TrialOf(gang).state;
    if (state == TrialState::kKilled || state == TrialState::kFailed) {
      End(epoch, Outcome::kKilled);  // its results are no longer needed
    } else if (!gang.worker.FollowOrders(OrdersOf(gang))) {
      End(epoch, Outcome::kFinished);
    } else if (const auto outcome = OutcomeNow(gang)) {
      End(epoch, *outcome);
    } else {
      Train(epoch);
    }
    Advance();
  }

  void End(Epoch epoch, Outcome outcome) {
    Failure failure;
    if (outcome == Outcome::kFailed)
      failure = {
          .kind = FailureKind::kExit, .rank = 0, .exit_code = 1, .message = "simulated failure"};
    Execute(RecordFact{epoch, AttemptEnded{gangs_.at(epoch).attempt, outcome, failure}});
    gangs_.erase(epoch);
  }

  const Trial& TrialOf(const Gang& gang) const { return *brain_.state().Find(gang.attempt.trial); }

  Orders OrdersOf(const Gang& gang) const {
    return OrdersFor(*brain_.state().Find(gang.attempt.trial.sweep), TrialOf(gang));
  }

  double ValueOf(const Gang& gang) const {
    return curves_.ValueAt(gang.attempt.trial.number, TrialOf(gang).config, gang.worker.step());
  }

  std::optional<Outcome> OutcomeNow(const Gang& gang) const {
    const TrialNumber trial = gang.attempt.trial.number;
    if (const auto outcome = curves_.OutcomeAfter(trial, gang.worker.step())) return outcome;
    const bool complete =
        spec_.max_step.value == 0 && gang.worker.step() >= curves_.LastStep(trial);
    return complete ? std::optional(Outcome::kFinished) : std::nullopt;
  }

  Summary FullSummary() const {
    Summary summary = tally_.summary();
    for (int i = 0; i < summary.created; ++i) {
      const TrialNumber trial(static_cast<uint32_t>(i));
      summary.steps_in_full +=
          (spec_.max_step.value > 0 ? spec_.max_step : curves_.LastStep(trial)).value;
    }
    return summary;
  }

  const SweepSpec spec_;
  const Curves& curves_;
  const Assumptions assumed_;
  Timeline timeline_;
  Brain brain_;
  Tally tally_;
  const std::function<void(const Event&)>& observe_;
  std::map<Epoch, Gang> gangs_;
  int64_t reports_ = 0;
  std::optional<Time> next_advance_;  // when the brain asked for its next turn
};

}  // namespace

Result<Summary> Simulate(const SweepSpec& requested, const Algorithms& algorithms,
                         const Curves& curves, const Assumptions& assumed,
                         const std::function<void(const Event&)>& observe) {
  SweepSpec spec = requested;
  spec.time_attr.clear();  // the curves count their steps in this unit
  if (Status status = CheckCanRun(spec, curves, assumed); !status.ok()) return status.error();
  auto searcher = algorithms.MakeSearcher(spec);
  if (!searcher.ok()) return searcher.error();
  const auto scheduler = algorithms.MakeScheduler(spec);
  if (!scheduler.ok()) return scheduler.error();
  return Simulation(WithOneCpuPerRank(spec), algorithms, curves, assumed, (*scheduler)->Rungs(),
                    observe)
      .Run();
}

}  // namespace attune::simulate
