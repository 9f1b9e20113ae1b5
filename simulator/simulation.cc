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

constexpr int64_t kTurnsBetweenQuestions = 1'000;

// The slots of the executor at this place among them.
int SlotsOf(const Assumptions& assumed, int executor) {
  const int evenly = assumed.slots / assumed.executors;
  return evenly + (executor < assumed.slots % assumed.executors ? 1 : 0);
}

Status CheckRuns(const SweepSpec& spec, const Curves& curves, const Assumptions& assumed) {
  if (!spec.warm_start.empty())
    return Invalid(
        "warm_start: the results of earlier sweeps lie with a server; remove the key to simulate");
  if (spec.External())
    return Invalid(
        "the sweep has no `command`: whoever asks for its trials decides when they run, so there "
        "is nothing to simulate");
  if (spec.ReportedMetrics().size() > 1 && curves.OthersAt(TrialNumber(0), Step(1)).empty())
    return Invalid(
        "simulated trials report one metric, and the sweep has several objectives or constraints: "
        "simulate it with `metric` alone");
  const int largest = SlotsOf(assumed, 0);
  if (MinWorkers(spec.gang) > largest)
    return Invalid("resources.workers: a trial has " + std::to_string(MinWorkers(spec.gang)) +
                   " workers, and an executor has " + std::to_string(largest) +
                   " slots; a trial runs on one executor, so give it more slots");
  if (largest > kExecutorCpusMax)
    return Invalid("an executor has at most " + std::to_string(kExecutorCpusMax) + " slots");
  const int64_t gpus = int64_t{assumed.slots} * spec.gang.per_worker.gpus;
  if (gpus > kMaxGpus)
    return Invalid("the slots have " + std::to_string(gpus) + " GPUs together, and more than " +
                   std::to_string(kMaxGpus) + " are not simulated: take fewer slots");
  if (spec.max_step.value == 0 && curves.End(TrialNumber(0)).value == 0)
    return Invalid(
        "scheduler.max is 0, so that the program decides when a trial is complete, which made-up "
        "curves do not know: set scheduler.max, or give recorded curves");
  return {};
}

// A slot is one CPU here, so that a rank that asks for no CPU takes a slot as well; and each is on
// an executor that would do.
SweepSpec ForSlots(SweepSpec spec) {
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
      Tell(JoinExecutor{.name = "executor-" + std::to_string(i + 1),
                        .instance = "simulated",
                        .resources = {.cpus = slots, .gpus = slots * spec_.gang.per_worker.gpus}});
    }
    Tell(CreateSweep{.spec = spec_});
    Advance();
    for (int64_t turn = 0; !tally_.over(); ++turn) {
      if (assumed_.given_up && turn % kTurnsBetweenQuestions == 0 && assumed_.given_up())
        return Invalid("it takes too long here: ask for fewer trials or steps");
      if (spec_.stop.max_trials == 0 && tally_.summary().created > assumed_.trials_endless)
        return Invalid("the sweep has not ended after " + std::to_string(assumed_.trials_endless) +
                       " trials: set stop.max_trials");
      if (assumed_.max_reports > 0 && reports_ > assumed_.max_reports)
        return Invalid("trials would report more than " + std::to_string(assumed_.max_reports) +
                       " times together: lower scheduler.max");
      if (timeline_.empty())
        return Error{ErrorCode::kInternal,
                     "nothing of the sweep runs, and it has not ended; please report this, with "
                     "the sweep file"};
      timeline_.RunNext();
    }
    return Whole();
  }

 private:
  struct Gang {
    AttemptId attempt;
    Worker worker;
    Seconds seconds{0};  // trained
  };

  void Tell(const Command& command) {
    const auto events = brain_.Execute(command, timeline_.now());
    ATTUNE_CHECK(events.ok());
    Follow(*events);
  }

  // What follows, now and when time alone has made it due.
  void Advance() {
    Follow(brain_.Advance(timeline_.now()));
    for (auto thoughts = brain_.Thoughts(); !thoughts.empty(); thoughts = brain_.Thoughts()) {
      for (const Thought& thought : thoughts) Tell(thought.Think());
      Follow(brain_.Advance(timeline_.now()));
    }
    const auto due = brain_.Due(timeline_.now());
    if (!due || due == due_) return;
    due_ = due;
    timeline_.At(*due, [this, due] {
      if (due_ != due) return;
      due_.reset();
      Advance();
    });
  }

  void Follow(const std::vector<Event>& events) {
    for (const Event& event : events) {
      tally_.Observe(event);
      if (observe_) observe_(event);
      if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact)) {
        const Step from = assigned->resume ? assigned->resume->step : Step(0);
        const Epoch epoch = assigned->epoch;
        gangs_[epoch] = {.attempt = assigned->attempt, .worker = Worker(from)};
        if (assumed_.start.value == 0 && !EndsByItself(gangs_[epoch])) {
          Train(epoch);
        } else {
          timeline_.After(ToMicroseconds(assumed_.start), [this, epoch] { Started(epoch); });
        }
      }
    }
  }

  void Started(Epoch epoch) {
    if (const auto ends = EndsByItself(gangs_.at(epoch))) {
      End(epoch, *ends);
      Advance();
    } else {
      Train(epoch);
    }
  }

  Step NextReport(const Gang& gang) const {
    return curves_.NextReport(gang.attempt.trial.number, gang.worker.step());
  }

  // As far as the next report of this attempt's gang, and what its rank 0 does with it.
  void Train(Epoch epoch) {
    Gang& gang = gangs_.at(epoch);
    const Seconds takes =
        curves_.SecondsOf(gang.attempt.trial.number, NextReport(gang)).value_or(assumed_.step);
    gang.seconds.value += takes.value;
    timeline_.After(ToMicroseconds(takes), [this, epoch] { Trained(epoch); });
  }

  void Trained(Epoch epoch) {
    ++reports_;
    Gang& gang = gangs_.at(epoch);
    const auto said = gang.worker.Train(OrdersOf(gang), NextReport(gang));
    if (said.checkpoint)
      Tell(RecordFact{epoch,
                      CheckpointSaved{.attempt = gang.attempt, .checkpoint = {.step = said.step}}});
    Report report{.step = said.step, .seconds = gang.seconds, .waits = said.waits};
    report.metrics = curves_.OthersAt(gang.attempt.trial.number, said.step);
    report.metrics[spec_.objective().metric] = ValueOf(gang);
    Tell(RecordFact{epoch, TrialReported{gang.attempt, std::move(report)}});
    const TrialState state = TrialOf(gang).state;
    if (state == TrialState::kKilled || state == TrialState::kFailed) {
      End(epoch, Outcome::kKilled);  // nobody wants it any more
    } else if (!gang.worker.Obey(OrdersOf(gang))) {
      End(epoch, Outcome::kFinished);
    } else if (const auto ends = EndsByItself(gang)) {
      End(epoch, *ends);
    } else {
      Train(epoch);
    }
    Advance();
  }

  void End(Epoch epoch, Outcome outcome) {
    Failure failure;
    if (outcome == Outcome::kFailed)
      failure = {.kind = FailureKind::kExit, .rank = 0, .exit_code = 1, .message = "it failed"};
    Tell(RecordFact{epoch, AttemptEnded{gangs_.at(epoch).attempt, outcome, failure}});
    gangs_.erase(epoch);
  }

  const Trial& TrialOf(const Gang& gang) const { return *brain_.state().Find(gang.attempt.trial); }

  Orders OrdersOf(const Gang& gang) const {
    return OrdersFor(*brain_.state().Find(gang.attempt.trial.sweep), TrialOf(gang));
  }

  double ValueOf(const Gang& gang) const {
    return curves_.ValueAt(gang.attempt.trial.number, TrialOf(gang).config, gang.worker.step());
  }

  std::optional<Outcome> EndsByItself(const Gang& gang) const {
    const TrialNumber trial = gang.attempt.trial.number;
    if (const auto ends = curves_.EndsAfter(trial, gang.worker.step())) return ends;
    const bool over = spec_.max_step.value == 0 && gang.worker.step() >= curves_.End(trial);
    return over ? std::optional(Outcome::kFinished) : std::nullopt;
  }

  Summary Whole() const {
    Summary summary = tally_.summary();
    for (int i = 0; i < summary.created; ++i) {
      const TrialNumber trial(static_cast<uint32_t>(i));
      summary.steps_in_full +=
          (spec_.max_step.value > 0 ? spec_.max_step : curves_.End(trial)).value;
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
  std::optional<Time> due_;  // when it will look again by itself
};

}  // namespace

Result<Summary> Simulate(const SweepSpec& asked, const Algorithms& algorithms, const Curves& curves,
                         const Assumptions& assumed,
                         const std::function<void(const Event&)>& observe) {
  SweepSpec spec = asked;
  spec.time_attr.clear();  // the steps of curves are in its unit already
  if (Status runs = CheckRuns(spec, curves, assumed); !runs.ok()) return runs.error();
  auto searcher = algorithms.MakeSearcher(spec);
  if (!searcher.ok()) return searcher.error();
  const auto scheduler = algorithms.MakeScheduler(spec);
  if (!scheduler.ok()) return scheduler.error();
  return Simulation(ForSlots(spec), algorithms, curves, assumed, (*scheduler)->Rungs(), observe)
      .Run();
}

}  // namespace attune::simulate
