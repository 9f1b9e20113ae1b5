#include <algorithm>

#include "tests/sim/algorithms.h"
#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// Owners of equal sweeps take turns, and so do equal sweeps of one owner; a gang for which slots
// are reserved starts once those before it have ended. Slots stay reserved while their executor is
// not lost and the gang could start.
class Turns final : public Checker {
 public:
  using Checker::Checker;

  void OnEvent(const Event& event) override {
    if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact)) {
      if (assigned->ranks.empty()) return;
      Share(*assigned, event.time);
      Shade(*assigned);
    }
    if (const auto* released = std::get_if<ReservationReleased>(&event.fact))
      Released(*released, event.time);
  }

  void OnBatch() override {
    const auto& reservation = books_.reservation;
    if (!reservation || !reservation->ahead.empty()) return;
    for (const auto& [name, workers] : reservation->workers) {
      if (!reality_.IsSeen(name)) return;  // it is away
      if (books_.executors.at(name).ends) return;
    }
    const SweepBook& holder = *books_.Find(reservation->sweep);
    if (holder.thinks || WaitsForASender(holder)) return;
    const bool outranked = std::ranges::any_of(books_.sweeps, [&](const auto& entry) {
      // An edit may have lowered it since it took the slots.
      return entry.second.spec.priority > holder.spec.priority || entry.second.edited > 0;
    });
    if (!outranked)
      Find("all before it have ended on " + Names(*reservation) + ", which is reserved for sweep " +
           ToString(holder.id) + ", and its gang does not start");
  }

 private:
  static std::string Names(const ReservationBook& reservation) {
    std::string names;
    for (const auto& [name, workers] : reservation.workers)
      names += (names.empty() ? "" : ", ") + name;
    return names;
  }

  // Whether a trial of it may wait for an executor that has its checkpoint, and is away.
  bool WaitsForASender(const SweepBook& sweep) const {
    return std::ranges::any_of(sweep.trials, [&](const auto& entry) {
      const TrialBook& trial = entry.second;
      return trial.state == TrialState::kPending &&
             std::ranges::any_of(trial.checkpoints, [&](const CheckpointBook& checkpoint) {
               return !checkpoint.dropped && !reality_.IsSeen(checkpoint.executor);
             });
    });
  }

  // Whether a checkpoint of the trial's may lie where only some can read it.
  bool Bound(const TrialBook& trial) const {
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

  // Whether the sweep would start one more gang now if it were its turn. With a reservation: one
  // that may use the reserved slots.
  bool Waits(const SweepBook& sweep, Time now, const ReservationBook* reserved = nullptr) const {
    if (sweep.state != SweepState::kRunning || sweep.stopping) return false;
    if (std::ranges::any_of(sweep.trials, [&](const auto& entry) {
          const TrialBook& trial = entry.second;
          return trial.state == TrialState::kPending && !trial.live && trial.not_before <= now &&
                 !Bound(trial) && (reserved == nullptr || !Avoids(trial, *reserved));
        }))
      return true;
    // A space may be used up without the searcher having said so, who ponders may have nothing yet,
    // and a population may be complete.
    const std::string& searcher = sweep.spec.searcher.name;
    return !sweep.exhausted && searcher != "grid" && searcher != "tpe" && searcher != "bohb" &&
           searcher != "gp" && searcher != "auto" && searcher != kPondering &&
           sweep.spec.scheduler.name != "pbt" && sweep.spec.scheduler.name != "pb2" &&
           sweep.Created() < sweep.spec.stop.max_trials;
  }

  void Released(const ReservationReleased& fact, Time now) {
    const auto& reservation = books_.reservation;
    const SweepBook* sweep = books_.Find(fact.sweep);
    if (!reservation || sweep == nullptr) return;
    const int most = sweep->spec.max_concurrent_trials;
    if (!Waits(*sweep, now, &*reservation) || (most > 0 && sweep->Live() >= most)) return;
    for (const auto& [name, workers] : reservation->workers) {
      const ExecutorBook& executor = books_.executors.at(name);
      const Resources& each = sweep->spec.gang.per_worker;
      const Resources& room = executor.resources;
      if (executor.lost || executor.drained || executor.unhealthy || executor.quarantined ||
          executor.excluded.contains(fact.sweep) || executor.ends ||
          workers * each.cpus > room.cpus || workers * each.gpus > room.gpus ||
          workers * each.memory_bytes > room.memory_bytes)
        return;
    }
    Find("sweep " + ToString(fact.sweep) + " loses the slots reserved on " + Names(*reservation) +
         ", which is not lost");
  }

  // Whether gangs can be counted instead of what they use.
  bool AllAlike() const {
    return std::ranges::all_of(books_.sweeps, [&](const auto& entry) {
      return entry.second.spec.gang == books_.sweeps.begin()->second.spec.gang &&
             !entry.second.spec.External();
    });
  }
  int LiveOf(const std::string& owner) const {
    int live = 0;
    for (const auto& [id, sweep] : books_.sweeps) {
      if (sweep.owner == owner) live += sweep.Live();
    }
    return live;
  }

  void Share(const AttemptAssigned& fact, Time now) {
    const SweepBook* mine = books_.Find(fact.attempt.trial.sweep);
    if (mine == nullptr || books_.reservation || mine->spec.max_concurrent_trials > 0) return;
    if (mine->spec.gang.min_workers > 0) return;  // its gangs do not all use as much
    // Where one has too little time for a sweep's gangs, that sweep waits for others.
    if (std::ranges::any_of(books_.executors, [](const auto& entry) { return entry.second.ends; }))
      return;
    for (const auto& [id, other] : books_.sweeps) {
      const bool equal = id != mine->id && other.spec.gang == mine->spec.gang &&
                         !other.spec.External() && other.spec.priority == mine->spec.priority &&
                         other.spec.max_concurrent_trials == 0;
      // Some executors may not be for it.
      const bool excluded = std::ranges::any_of(books_.executors, [id = id](const auto& entry) {
        return entry.second.excluded.contains(id);
      });
      if (!equal || excluded || !Waits(other, now)) continue;
      if (AllAlike() && LiveOf(other.owner) < LiveOf(mine->owner))
        Find(ToString(fact.attempt) + " starts as gang " + std::to_string(LiveOf(mine->owner) + 1) +
             " of " + mine->owner + "'s, and " + other.owner + " waits with " +
             std::to_string(LiveOf(other.owner)));
      if (other.owner == mine->owner && other.Live() < mine->Live())
        Find(ToString(fact.attempt) + " starts as gang " + std::to_string(mine->Live() + 1) +
             " of its sweep, and sweep " + ToString(id) + ", its equal, waits with " +
             std::to_string(other.Live()));
    }
  }

  // Others than the gang that slots are reserved for leave it room.
  void Shade(const AttemptAssigned& fact) {
    const auto& reservation = books_.reservation;
    if (!reservation || reservation->sweep == fact.attempt.trial.sweep) return;
    const SweepBook& holder = *books_.Find(reservation->sweep);
    if (books_.Find(fact.attempt.trial.sweep)->spec.priority > holder.spec.priority) return;
    for (const auto& [name, workers] : reservation->workers) Shade(fact, name, holder, workers);
  }
  void Shade(const AttemptAssigned& fact, const std::string& executor, const SweepBook& holder,
             int workers) {
    const GangSpec& gang = holder.spec.gang;
    struct Use {
      int64_t cpus = 0;
      int64_t gpu_percent = 0;  // of all GPUs together: gangs may share one
    };
    Use used{workers * gang.per_worker.cpus,
             int64_t{workers} * gang.per_worker.gpus * gang.gpu_percent};
    const auto add = [&](const std::vector<RankSlot>& ranks) {
      for (const RankSlot& slot : ranks) {
        if (slot.executor != executor) continue;
        used.cpus += slot.cpus;
        used.gpu_percent += GpuPercent(slot);
      }
    };
    for (const AttemptBook* attempt : books_.Live()) {
      if (!books_.reservation->ahead.contains({executor, attempt->epoch})) add(attempt->ranks);
    }
    const Use before = used;
    add(fact.ranks);
    // A sweep of a higher priority may have taken more of one kind than is left.
    const Resources& total = books_.executors.at(executor).resources;
    if ((used.cpus > before.cpus && used.cpus > total.cpus) ||
        (used.gpu_percent > before.gpu_percent && used.gpu_percent > 100 * total.gpus))
      Find(ToString(fact.attempt) + " takes slots of " + executor +
           " that are reserved for sweep " + ToString(holder.id));
  }
};

}  // namespace

std::unique_ptr<Checker> CheckTurns(const Evidence& evidence) {
  return std::make_unique<Turns>(evidence);
}

}  // namespace attune::sim
