#include <algorithm>

#include "tests/sim/algorithms.h"
#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// Owners of equal sweeps get equal shares, and so do equal sweeps of one owner. A gang with
// reserved slots starts when the gangs before it have ended. Slots stay reserved while their
// executor exists and the gang could start.
class Turns final : public Checker {
 public:
  using Checker::Checker;

  void OnEvent(const Event& event) override {
    if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact)) {
      if (assigned->ranks.empty()) return;
      CheckShare(*assigned, event.time);
      CheckReservedSlots(*assigned);
    }
    if (const auto* released = std::get_if<ReservationReleased>(&event.fact))
      CheckReleased(*released, event.time);
  }

  void OnBatch() override {
    const auto& reservation = books_.reservation;
    if (!reservation || !reservation->ahead.empty()) return;
    for (const auto& [name, workers] : reservation->workers) {
      if (!reality_.IsReachable(name)) return;  // unreachable
      if (books_.executors.at(name).ends) return;
    }
    const SweepBook& holder = *books_.Find(reservation->sweep);
    if (holder.thinks || WaitsForCheckpoint(holder)) return;
    const bool outranked = std::ranges::any_of(books_.sweeps, [&](const auto& entry) {
      // An edit may have lowered its priority since the reservation.
      return entry.second.spec.priority > holder.spec.priority || entry.second.edited > 0;
    });
    if (!outranked)
      Report("all earlier gangs have ended on " + Names(*reservation) +
             ", which is reserved for sweep " + ToString(holder.id) +
             ", but its gang does not start");
  }

 private:
  static std::string Names(const ReservationBook& reservation) {
    std::string names;
    for (const auto& [name, workers] : reservation.workers)
      names += (names.empty() ? "" : ", ") + name;
    return names;
  }

  // Whether a trial of the sweep may wait for an unreachable executor that has its checkpoint.
  bool WaitsForCheckpoint(const SweepBook& sweep) const {
    return std::ranges::any_of(sweep.trials, [&](const auto& entry) {
      const TrialBook& trial = entry.second;
      return trial.state == TrialState::kPending &&
             std::ranges::any_of(trial.checkpoints, [&](const CheckpointBook& checkpoint) {
               return !checkpoint.dropped && !reality_.IsReachable(checkpoint.executor);
             });
    });
  }

  // Whether only some executors may be able to read a checkpoint of the trial.
  bool IsBoundToExecutors(const TrialBook& trial) const {
    return (!trial.checkpoints.empty() || trial.cloned) &&
           std::ranges::any_of(books_.executors,
                               [](const auto& entry) { return !entry.second.folder.empty(); });
  }

  // Whether the trial avoids an executor whose slots are reserved.
  static bool Avoids(const TrialBook& trial, const ReservationBook& reservation) {
    return std::ranges::any_of(reservation.workers, [&](const auto& entry) {
      return trial.avoided.contains(entry.first);
    });
  }

  // Whether the sweep could start another gang now. With a reservation: a gang that may use its
  // slots.
  bool IsWaiting(const SweepBook& sweep, Time now,
                 const ReservationBook* reserved = nullptr) const {
    if (sweep.state != SweepState::kRunning || sweep.stopping) return false;
    if (std::ranges::any_of(sweep.trials, [&](const auto& entry) {
          const TrialBook& trial = entry.second;
          return trial.state == TrialState::kPending && !trial.live && trial.not_before <= now &&
                 !IsBoundToExecutors(trial) && (reserved == nullptr || !Avoids(trial, *reserved));
        }))
      return true;
    // With some algorithms, a new trial may be impossible without a record in the log: the search
    // space may be used up, a slow proposal may not be ready, or a population may be complete.
    const std::string& searcher = sweep.spec.searcher.name;
    return !sweep.exhausted && searcher != "grid" && searcher != "tpe" && searcher != "bohb" &&
           searcher != "gp" && searcher != "auto" && searcher != kSlowSearcher &&
           sweep.spec.scheduler.name != "pbt" && sweep.spec.scheduler.name != "pb2" &&
           sweep.CreatedCount() < sweep.spec.stop.max_trials;
  }

  void CheckReleased(const ReservationReleased& fact, Time now) {
    const auto& reservation = books_.reservation;
    const SweepBook* sweep = books_.Find(fact.sweep);
    if (!reservation || sweep == nullptr) return;
    const int max_live = sweep->spec.max_concurrent_trials;
    if (!IsWaiting(*sweep, now, &*reservation) || (max_live > 0 && sweep->LiveCount() >= max_live))
      return;
    for (const auto& [name, workers] : reservation->workers) {
      const ExecutorBook& executor = books_.executors.at(name);
      const Resources& each = sweep->spec.gang.per_worker;
      const Resources& total = executor.resources;
      if (executor.lost || executor.drained || executor.unhealthy || executor.quarantined ||
          executor.excluded.contains(fact.sweep) || executor.ends ||
          workers * each.cpus > total.cpus || workers * each.gpus > total.gpus ||
          workers * each.memory_bytes > total.memory_bytes)
        return;
    }
    Report("sweep " + ToString(fact.sweep) + " loses the slots reserved on " + Names(*reservation) +
           ", although it could use them");
  }

  // Whether all gangs are equal, so that the number of gangs measures the use of slots.
  bool AllGangsEqual() const {
    return std::ranges::all_of(books_.sweeps, [&](const auto& entry) {
      return entry.second.spec.gang == books_.sweeps.begin()->second.spec.gang &&
             !entry.second.spec.External();
    });
  }
  int LiveOf(const std::string& owner) const {
    int live = 0;
    for (const auto& [id, sweep] : books_.sweeps) {
      if (sweep.owner == owner) live += sweep.LiveCount();
    }
    return live;
  }

  void CheckShare(const AttemptAssigned& fact, Time now) {
    const SweepBook* sweep = books_.Find(fact.attempt.trial.sweep);
    if (sweep == nullptr || books_.reservation || sweep->spec.max_concurrent_trials > 0) return;
    if (sweep->spec.gang.min_workers > 0) return;  // its gangs differ in size
    // An executor may have too little time for the gangs of one sweep only.
    if (std::ranges::any_of(books_.executors, [](const auto& entry) { return entry.second.ends; }))
      return;
    for (const auto& [id, other] : books_.sweeps) {
      const bool equal = id != sweep->id && other.spec.gang == sweep->spec.gang &&
                         !other.spec.External() && other.spec.priority == sweep->spec.priority &&
                         other.spec.max_concurrent_trials == 0;
      // The other sweep may be excluded from some executors.
      const bool excluded = std::ranges::any_of(books_.executors, [id = id](const auto& entry) {
        return entry.second.excluded.contains(id);
      });
      if (!equal || excluded || !IsWaiting(other, now)) continue;
      if (AllGangsEqual() && LiveOf(other.owner) < LiveOf(sweep->owner))
        Report(ToString(fact.attempt) + " starts as gang " +
               std::to_string(LiveOf(sweep->owner) + 1) + " of " + sweep->owner + ", but " +
               other.owner + " waits with " + std::to_string(LiveOf(other.owner)));
      if (other.owner == sweep->owner && other.LiveCount() < sweep->LiveCount())
        Report(ToString(fact.attempt) + " starts as gang " +
               std::to_string(sweep->LiveCount() + 1) + " of its sweep, but the equal sweep " +
               ToString(id) + " waits with " + std::to_string(other.LiveCount()));
    }
  }

  // Other gangs must not use the reserved slots.
  void CheckReservedSlots(const AttemptAssigned& fact) {
    const auto& reservation = books_.reservation;
    if (!reservation || reservation->sweep == fact.attempt.trial.sweep) return;
    const SweepBook& holder = *books_.Find(reservation->sweep);
    if (books_.Find(fact.attempt.trial.sweep)->spec.priority > holder.spec.priority) return;
    for (const auto& [name, workers] : reservation->workers)
      CheckReservedSlots(fact, name, holder, workers);
  }
  void CheckReservedSlots(const AttemptAssigned& fact, const std::string& executor,
                          const SweepBook& holder, int workers) {
    const GangSpec& gang = holder.spec.gang;
    struct Use {
      int64_t cpus = 0;
      int64_t gpu_percent = 0;  // sum over all GPUs, because gangs may share one
    };
    Use used{workers * gang.per_worker.cpus,
             int64_t{workers} * gang.per_worker.gpus * gang.gpu_percent};
    const auto add_use = [&](const std::vector<RankSlot>& ranks) {
      for (const RankSlot& slot : ranks) {
        if (slot.executor != executor) continue;
        used.cpus += slot.cpus;
        used.gpu_percent += GpuPercent(slot);
      }
    };
    for (const AttemptBook* attempt : books_.LiveAttempts()) {
      if (!books_.reservation->ahead.contains({executor, attempt->epoch})) add_use(attempt->ranks);
    }
    const Use others = used;
    add_use(fact.ranks);
    // A sweep with a higher priority may already use some of the reserved resources.
    const Resources& total = books_.executors.at(executor).resources;
    if ((used.cpus > others.cpus && used.cpus > total.cpus) ||
        (used.gpu_percent > others.gpu_percent && used.gpu_percent > 100 * total.gpus))
      Report(ToString(fact.attempt) + " takes slots of " + executor +
             " that are reserved for sweep " + ToString(holder.id));
  }
};

}  // namespace

std::unique_ptr<Checker> CheckTurns(const Evidence& evidence) {
  return std::make_unique<Turns>(evidence);
}

}  // namespace attune::sim
