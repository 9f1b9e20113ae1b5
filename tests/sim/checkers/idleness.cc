#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/scheduler.h"
#include "tests/sim/algorithms.h"
#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// After this many minutes without an event, a missing start is a fault.
constexpr int64_t kMaxIdleMinutes = 3;
constexpr int64_t kMinuteUs = 60'000'000;

// No slot is idle while a trial could use it. After each batch, and after some minutes without one,
// no executor has free slots for a gang of a sweep with
//   - a waiting trial whose checkpoint is available,
//   - a paused trial that its scheduler would promote,
//   - a new trial to start.
// A sweep ends when nothing of it runs, waits or could start. Only existing gangs hold slots.
//
// For the next move of a scheduler, the checker asks a second instance, which observes only the
// log.
class Idleness final : public Checker {
 public:
  using Checker::Checker;

  void OnEvent(const Event& event) override {
    const auto id = SweepOf(event.fact);
    if (!id || std::holds_alternative<MetricsLogged>(event.fact) ||
        std::holds_alternative<SweepAnnotated>(event.fact) ||
        std::holds_alternative<TrialAnnotated>(event.fact))
      return;  // changes no decision
    if (const auto* created = std::get_if<SweepCreated>(&event.fact)) AddSweep(*created);
    const auto found = models_.find(*id);
    if (found == models_.end()) return;
    SweepModel& model = found->second;
    if (const auto* ended = std::get_if<SweepEnded>(&event.fact); ended != nullptr) {
      model.over = true;
      return;
    }
    if (std::holds_alternative<SweepReopened>(event.fact)) model.over = false;
    if (model.over) return;
    if (const auto* edited = std::get_if<SweepEdited>(&event.fact)) {
      model.spec = *edited->spec;
      TestAlgorithms().Complete(model.spec);
      model.scheduler->Adapt(model.spec);
    }
    model.scheduler->Observe(event);
    model.search_waits = std::holds_alternative<SearchWaits>(event.fact);
  }

  void OnBatch() override {
    minutes_without_event_ = 0;
    CheckIdleSlots(books_.last_time);
  }

  void OnQuietMinute(Time now) override {
    CheckLostGangs();
    if (++minutes_without_event_ < kMaxIdleMinutes) return;
    undisturbed_since_ = Time{now.us - (kMaxIdleMinutes - 1) * kMinuteUs};
    CheckIdleSlots(Time{books_.last_time.us + (kMaxIdleMinutes - 2) * kMinuteUs});
    undisturbed_since_.reset();
  }

 private:
  struct SweepModel {
    SweepSpec spec;
    std::unique_ptr<Scheduler> scheduler;
    bool search_waits = false;
    bool over = false;
  };
  struct Capacity {
    Resources free;
    const ExecutorBook* executor;
  };

  void AddSweep(const SweepCreated& fact) {
    SweepModel& model = models_[fact.sweep];
    model.spec = *fact.spec;
    TestAlgorithms().Complete(model.spec);
    model.scheduler = TestAlgorithms().MakeScheduler(model.spec).value();
  }

  // ---- idle slots ----------------------------------------------------------------------------

  void CheckIdleSlots(Time now) {
    std::optional<std::map<std::string, Capacity>> capacities;
    for (const auto& [id, sweep] : books_.sweeps) {
      if (sweep.state != SweepState::kRunning) continue;
      CheckHasWork(sweep);
      if (sweep.spec.External() || !MayStart(sweep)) continue;
      if (!capacities) capacities = FreeCapacity();
      if (capacities->empty() || !HasSlotsFor(sweep, *capacities)) continue;
      if (const std::string start = PossibleStart(sweep, now); !start.empty())
        Report("there are free slots for a gang of sweep " + ToString(id) + ", and " + start);
    }
  }

  bool MayStart(const SweepBook& sweep) const {
    const auto& reservation = books_.reservation;
    if (reservation && reservation->sweep != sweep.id) return false;
    const int max_live = sweep.spec.max_concurrent_trials;
    return max_live == 0 || sweep.LiveCount() < max_live;
  }

  // The free slots of executors that are reachable and open to all sweeps.
  std::map<std::string, Capacity> FreeCapacity() const {
    std::map<std::string, Capacity> capacities;
    for (const auto& [name, executor] : books_.executors) {
      const bool closed =
          executor.lost || executor.drained || executor.unhealthy || executor.quarantined;
      // An executor with a limited lifetime may have too little time left.
      if (!closed && !executor.ends && IsAvailable(name))
        capacities[name] = {executor.resources, &executor};
    }
    for (const AttemptBook* attempt : books_.LiveAttempts()) {
      for (const RankSlot& slot : attempt->ranks) {
        const auto capacity = capacities.find(slot.executor);
        if (capacity == capacities.end()) continue;
        capacity->second.free.cpus -= slot.cpus;
        capacity->second.free.gpus -= static_cast<int>(slot.gpus.size());
        capacity->second.free.memory_bytes -= slot.memory_bytes;
      }
    }
    return capacities;
  }

  // Whether the server could reach the executor at its last decision, or the executor has been
  // connected for so long that the server must have noticed.
  bool IsAvailable(const std::string& executor) const {
    if (!undisturbed_since_) return reality_.IsReachable(executor);
    const Time* since = reality_.ConnectedSince(executor);
    return since != nullptr && *since < *undisturbed_since_;
  }

  static bool HasSlotsFor(const SweepBook& sweep,
                          const std::map<std::string, Capacity>& capacities) {
    const GangSpec& gang = sweep.spec.gang;
    const int64_t least = gang.min_workers > 0 ? gang.min_workers : gang.workers;
    int64_t together = 0;
    for (const auto& [name, capacity] : capacities) {
      if (capacity.executor->excluded.contains(sweep.id) ||
          !Matches(gang.required, capacity.executor->labels))
        continue;
      int64_t fits = capacity.free.cpus / gang.per_worker.cpus;
      if (gang.per_worker.gpus > 0)
        fits = std::min<int64_t>(fits, capacity.free.gpus / gang.per_worker.gpus);
      if (gang.per_worker.memory_bytes > 0)
        fits = std::min(fits, capacity.free.memory_bytes / gang.per_worker.memory_bytes);
      if (fits >= least) return true;
      if (capacity.executor->spans) together += std::max<int64_t>(fits, 0);
    }
    return together >= least;
  }

  // Describes what the sweep could start; empty if it cannot start anything.
  std::string PossibleStart(const SweepBook& sweep, Time now) const {
    bool any_ready = false;
    for (const auto& [number, trial] : sweep.trials) {
      if (!IsPending(trial) || trial.not_before > now) continue;
      any_ready = true;
      if (trial.avoided.empty() && !WaitsForCheckpoint(trial))
        return "trial " + ToString(trial.id) + " waits";
    }
    if (any_ready || sweep.stopping) return "";
    const NextMove next = NextOf(sweep);
    if (const auto* promote = std::get_if<Promote>(&next))
      return "trial " + std::to_string(promote->trial.value) +
             ", which is paused, could be promoted";
    const bool may_create = std::holds_alternative<StartNew>(next) && MayCreate(sweep) &&
                            !sweep.thinks && !models_.at(sweep.id).search_waits;
    return may_create ? "a new trial could start" : "";
  }

  // Whether the trial may wait for an unreachable executor that has its checkpoint.
  bool WaitsForCheckpoint(const TrialBook& trial) const {
    const auto is_unreachable = [this](const std::string& name) {
      const auto executor = books_.executors.find(name);
      return executor != books_.executors.end() && !executor->second.lost &&
             !executor->second.folder.empty() && !IsAvailable(name);
    };
    return (trial.cloned && is_unreachable(trial.cloned->executor)) ||
           std::ranges::any_of(trial.checkpoints, [&](const CheckpointBook& checkpoint) {
             return !checkpoint.dropped && is_unreachable(checkpoint.executor);
           });
  }

  // ---- stuck sweeps --------------------------------------------------------------------------

  void CheckHasWork(const SweepBook& sweep) {
    if (sweep.thinks) return;
    if (std::ranges::any_of(sweep.trials, [](const auto& entry) {
          return entry.second.live || IsPending(entry.second);
        }))
      return;
    std::string reason = "is stopping";
    if (!sweep.stopping) {
      const NextMove next = NextOf(sweep);
      if (std::holds_alternative<Promote>(next)) return;
      if (std::holds_alternative<StartNew>(next) && MayCreate(sweep)) return;
      reason = "has nothing to start";
    }
    Report("sweep " + ToString(sweep.id) + " " + reason + " and runs nothing, but it does not end");
  }

  // ---- decisions of schedulers ---------------------------------------------------------------

  static bool IsPending(const TrialBook& trial) {
    return trial.state == TrialState::kPending && !trial.live;
  }

  static bool MayCreate(const SweepBook& sweep) {
    const int max_trials = sweep.spec.stop.max_trials;
    return !sweep.stopping && !sweep.exhausted &&
           (max_trials == 0 || sweep.CreatedCount() < max_trials);
  }

  NextMove NextOf(const SweepBook& sweep) const {
    std::map<TrialNumber, Step> paused;
    int waiting = 0;
    for (const auto& [number, trial] : sweep.trials) {
      if (IsPending(trial)) ++waiting;
      if (trial.state == TrialState::kPaused && !trial.live && !trial.held)
        paused[number] = trial.last_step;
    }
    NextMove next = models_.at(sweep.id).scheduler->Next({.paused = paused,
                                                          .running = sweep.LiveCount(),
                                                          .waiting = waiting,
                                                          .created = sweep.CreatedCount(),
                                                          .may_create = MayCreate(sweep)});
    if (const auto* promote = std::get_if<Promote>(&next)) {
      const CheckpointBook* donor = promote->donor ? books_.Find(*promote->donor) : nullptr;
      const bool donor_missing =
          promote->donor && (donor == nullptr || donor->dropped || donor->unreported);
      if (!paused.contains(promote->trial) || donor_missing)
        return Wait{"the checkpoint or trial to promote is gone"};
    }
    return next;
  }

  // ---- slots of lost gangs -------------------------------------------------------------------

  // Reports gangs that hold slots for several minutes but do not exist.
  void CheckLostGangs() {
    std::map<std::pair<Epoch, std::string>, int> missing;
    for (const AttemptBook* attempt : books_.LiveAttempts()) {
      std::set<std::string> executors;
      for (const RankSlot& slot : attempt->ranks) executors.insert(slot.executor);
      for (const std::string& executor : executors) {
        if (reality_.IsRunning(attempt->epoch, executor)) continue;
        const auto previous = missing_since_.find({attempt->epoch, executor});
        const int minutes = previous == missing_since_.end() ? 1 : previous->second + 1;
        missing[{attempt->epoch, executor}] = minutes;
        if (minutes > kMaxIdleMinutes)
          Report(ToString(attempt->id) + " holds slots of " + executor +
                 ", but its gang does not exist");
      }
    }
    missing_since_ = std::move(missing);
  }

  std::map<SweepId, SweepModel> models_;
  std::map<std::pair<Epoch, std::string>, int> missing_since_;  // gang and executor to minutes
  int64_t minutes_without_event_ = 0;
  std::optional<Time> undisturbed_since_;  // executors connected since then count as reachable
};

}  // namespace

std::unique_ptr<Checker> CheckIdleness(const Evidence& evidence) {
  return std::make_unique<Idleness>(evidence);
}

}  // namespace attune::sim
