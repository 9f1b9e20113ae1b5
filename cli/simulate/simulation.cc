#include "cli/simulate/simulation.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cli/simulate/timeline.h"
#include "cli/simulate/worker.h"
#include "core/base/check.h"
#include "core/brain/brain.h"

namespace attune::simulate {
namespace {

constexpr int64_t kMaxGpus = 1'000'000;

Error Invalid(std::string message) { return {ErrorCode::kInvalid, std::move(message)}; }

// The slots of the executor at this place among them.
int SlotsOf(const Assumptions& assumed, int executor) {
  const int evenly = assumed.slots / assumed.executors;
  return evenly + (executor < assumed.slots % assumed.executors ? 1 : 0);
}

Status CheckRuns(const SweepSpec& spec, const Curves& curves, const Assumptions& assumed) {
  if (spec.External())
    return Invalid(
        "the sweep has no `command`: whoever asks for its trials decides when they run, so there "
        "is nothing to simulate");
  if (spec.objectives.size() > 1 || !spec.constraints.empty())
    return Invalid(
        "simulated trials report one metric, and the sweep has several objectives or constraints: "
        "simulate it with `metric` alone");
  const int largest = SlotsOf(assumed, 0);
  if (spec.gang.workers > largest)
    return Invalid("resources.workers: a trial has " + std::to_string(spec.gang.workers) +
                   " workers, and an executor has " + std::to_string(largest) +
                   " slots; a trial runs on one executor, so give it more slots");
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

// A slot is one CPU here, so that a rank that asks for no CPU takes a slot as well.
SweepSpec ForSlots(SweepSpec spec) {
  spec.gang.per_worker.cpus = 1;
  spec.gang.per_worker.memory_bytes = 0;
  return spec;
}

class Simulation {
 public:
  Simulation(SweepSpec spec, const Algorithms& algorithms, const Curves& curves,
             const Assumptions& assumed, const std::vector<Step>& rungs)
      : spec_(std::move(spec)),
        curves_(curves),
        assumed_(assumed),
        brain_(algorithms, [](const std::string&) { return true; }),
        tally_(spec_.objective(), rungs) {}

  Result<Summary> Run() {
    for (int i = 0; i < assumed_.executors; ++i) {
      const int slots = SlotsOf(assumed_, i);
      Tell(JoinExecutor{.name = "executor-" + std::to_string(i + 1),
                        .resources = {.cpus = slots, .gpus = slots * spec_.gang.per_worker.gpus}});
    }
    Tell(CreateSweep{.spec = spec_});
    Advance();
    while (!tally_.over()) {
      if (spec_.stop.max_trials == 0 && tally_.summary().created > assumed_.trials_endless)
        return Invalid("the sweep has not ended after " + std::to_string(assumed_.trials_endless) +
                       " trials: set stop.max_trials");
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
      if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact)) {
        const Step from = assigned->resume ? assigned->resume->step : Step(0);
        gangs_[assigned->epoch] = {.attempt = assigned->attempt, .worker = Worker(from)};
        Train(assigned->epoch);
      }
    }
  }

  // One more step of this attempt's gang, and what its rank 0 does with it.
  void Train(Epoch epoch) {
    Gang& gang = gangs_.at(epoch);
    const Step next(gang.worker.step().value + 1);
    const Seconds takes =
        curves_.SecondsOf(gang.attempt.trial.number, next).value_or(assumed_.step);
    gang.seconds.value += takes.value;
    timeline_.After(ToMicroseconds(takes), [this, epoch] { Trained(epoch); });
  }

  void Trained(Epoch epoch) {
    Gang& gang = gangs_.at(epoch);
    const auto said = gang.worker.Train(OrdersOf(gang));
    if (said.checkpoint)
      Tell(RecordFact{epoch,
                      CheckpointSaved{.attempt = gang.attempt, .checkpoint = {.step = said.step}}});
    Report report{.step = said.step, .seconds = gang.seconds, .waits = said.waits};
    report.metrics.emplace(spec_.objective().metric, ValueOf(gang));
    Tell(RecordFact{epoch, TrialReported{gang.attempt, std::move(report)}});
    if (gang.worker.Obey(OrdersOf(gang)) && !EndsByItself(gang)) {
      Train(epoch);
    } else {
      Tell(RecordFact{epoch, AttemptEnded{gang.attempt, Outcome::kFinished, {}}});
      gangs_.erase(epoch);
    }
    Advance();
  }

  const Trial& TrialOf(const Gang& gang) const { return *brain_.state().Find(gang.attempt.trial); }

  Orders OrdersOf(const Gang& gang) const {
    return OrdersFor(*brain_.state().Find(gang.attempt.trial.sweep), TrialOf(gang));
  }

  double ValueOf(const Gang& gang) const {
    return curves_.ValueAt(gang.attempt.trial.number, TrialOf(gang).config, gang.worker.step());
  }

  bool EndsByItself(const Gang& gang) const {
    return spec_.max_step.value == 0 &&
           gang.worker.step() >= curves_.End(gang.attempt.trial.number);
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
  std::map<Epoch, Gang> gangs_;
  std::optional<Time> due_;  // when it will look again by itself
};

}  // namespace

Result<Summary> Simulate(const SweepSpec& spec, const Algorithms& algorithms, const Curves& curves,
                         const Assumptions& assumed) {
  if (Status runs = CheckRuns(spec, curves, assumed); !runs.ok()) return runs.error();
  auto searcher = algorithms.MakeSearcher(spec);
  if (!searcher.ok()) return searcher.error();
  const auto scheduler = algorithms.MakeScheduler(spec);
  if (!scheduler.ok()) return scheduler.error();
  return Simulation(ForSlots(spec), algorithms, curves, assumed, (*scheduler)->Rungs()).Run();
}

}  // namespace attune::simulate
