#include <algorithm>

#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// Equal sweeps take turns, and a gang for which slots are reserved starts once those before it have
// ended. Slots stay reserved while their executor is not lost and the gang could start.
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
    if (!reality_.IsSeen(reservation->executor)) return;  // it is away
    const SweepBook& holder = *books_.Find(reservation->sweep);
    const bool outranked = std::ranges::any_of(books_.sweeps, [&](const auto& entry) {
      return entry.second.spec.priority > holder.spec.priority;
    });
    if (!outranked)
      Find("all before it have ended on " + reservation->executor +
           ", which is reserved for sweep " + ToString(holder.id) +
           ", and its gang does not start");
  }

 private:
  // Whether the sweep would start one more gang now if it were its turn.
  static bool Waits(const SweepBook& sweep, Time now) {
    if (sweep.state != SweepState::kRunning || sweep.stopping) return false;
    if (std::ranges::any_of(sweep.trials, [&](const auto& entry) {
          const TrialBook& trial = entry.second;
          return trial.state == TrialState::kPending && !trial.live && trial.not_before <= now;
        }))
      return true;
    // A grid may come to its end without having said so.
    return !sweep.exhausted && sweep.spec.searcher.name != "grid" &&
           sweep.Created() < sweep.spec.stop.max_trials;
  }

  void Released(const ReservationReleased& fact, Time now) {
    const auto& reservation = books_.reservation;
    const SweepBook* sweep = books_.Find(fact.sweep);
    if (!reservation || sweep == nullptr) return;
    const int most = sweep->spec.max_concurrent_trials;
    if (!Waits(*sweep, now) || (most > 0 && sweep->Live() >= most)) return;
    const ExecutorBook& executor = books_.executors.at(reservation->executor);
    const GangSpec& gang = sweep->spec.gang;
    const Resources& room = executor.resources;
    if (!executor.lost && gang.workers * gang.per_worker.cpus <= room.cpus &&
        gang.workers * gang.per_worker.gpus <= room.gpus &&
        gang.workers * gang.per_worker.memory_bytes <= room.memory_bytes)
      Find("sweep " + ToString(fact.sweep) + " loses the slots reserved on " +
           reservation->executor + ", which is not lost");
  }

  void Share(const AttemptAssigned& fact, Time now) {
    const SweepBook* mine = books_.Find(fact.attempt.trial.sweep);
    if (mine == nullptr || books_.reservation || mine->spec.max_concurrent_trials > 0) return;
    for (const auto& [id, other] : books_.sweeps) {
      const bool equal = id != mine->id && other.spec.gang == mine->spec.gang &&
                         !other.spec.External() && other.spec.priority == mine->spec.priority &&
                         other.spec.max_concurrent_trials == 0;
      if (equal && Waits(other, now) && other.Live() < mine->Live())
        Find(ToString(fact.attempt) + " starts as gang " + std::to_string(mine->Live() + 1) +
             " of its sweep, and sweep " + ToString(id) + ", its equal, waits with " +
             std::to_string(other.Live()));
    }
  }

  // Others than the gang that slots are reserved for leave it room.
  void Shade(const AttemptAssigned& fact) {
    const auto& reservation = books_.reservation;
    if (!reservation || reservation->sweep == fact.attempt.trial.sweep) return;
    if (fact.ranks.front().executor != reservation->executor) return;
    const SweepBook& holder = *books_.Find(reservation->sweep);
    if (books_.Find(fact.attempt.trial.sweep)->spec.priority > holder.spec.priority) return;
    Resources used{.cpus = holder.spec.gang.workers * holder.spec.gang.per_worker.cpus,
                   .gpus = holder.spec.gang.workers * holder.spec.gang.per_worker.gpus};
    const auto add = [&](const std::vector<RankSlot>& ranks) {
      for (const RankSlot& slot : ranks) {
        if (slot.executor != reservation->executor) continue;
        used.cpus += slot.cpus;
        used.gpus += static_cast<int>(slot.gpus.size());
      }
    };
    for (const AttemptBook* attempt : books_.Live()) {
      if (!reservation->ahead.contains(attempt->epoch)) add(attempt->ranks);
    }
    const Resources before = used;
    add(fact.ranks);
    // A sweep of a higher priority may have taken more of one kind than is left.
    const Resources& total = books_.executors.at(reservation->executor).resources;
    if ((used.cpus > before.cpus && used.cpus > total.cpus) ||
        (used.gpus > before.gpus && used.gpus > total.gpus))
      Find(ToString(fact.attempt) + " takes slots of " + reservation->executor +
           " that are reserved for sweep " + ToString(holder.id));
  }
};

}  // namespace

std::unique_ptr<Checker> CheckTurns(const Evidence& evidence) {
  return std::make_unique<Turns>(evidence);
}

}  // namespace attune::sim
