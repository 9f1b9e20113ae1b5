#include <algorithm>
#include <map>
#include <set>

#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// Each slot has one holder, and at most 100 % of each GPU is used. A gang gets one slot for each
// rank on existing executors, or none.
class Slots final : public Checker {
 public:
  using Checker::Checker;

  void OnEvent(const Event& event) override {
    if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact)) CheckAssigned(*assigned);
    if (const auto* lost = std::get_if<ExecutorLost>(&event.fact))
      CheckNoSlotsHeld(lost->name, "is lost");
    if (const auto* joined = std::get_if<ExecutorJoined>(&event.fact))
      CheckNoSlotsHeld(joined->name, "joins");
  }

 private:
  struct Use {
    Resources held;
    std::map<int, int> gpus;  // GPU to percent
  };

  void CheckAssigned(const AttemptAssigned& fact) {
    const SweepBook* sweep = books_.Find(fact.attempt.trial.sweep);
    if (sweep == nullptr) return Report(ToString(fact.attempt) + " belongs to no sweep");
    const GangSpec& gang = sweep->spec.gang;
    const bool external = sweep->spec.External();
    const int min_workers = gang.min_workers > 0 ? gang.min_workers : gang.workers;
    CheckSpan(fact);
    CheckMayUse(fact, gang);
    if (std::ssize(fact.ranks) < (external ? 0 : min_workers) ||
        std::ssize(fact.ranks) > (external ? 0 : gang.workers))
      Report(ToString(fact.attempt) + " has slots for " + std::to_string(fact.ranks.size()) +
             " ranks, but needs " + std::to_string(min_workers) + " to " +
             std::to_string(gang.workers));

    std::map<std::string, Use> used;
    for (const AttemptBook* attempt : books_.LiveAttempts())
      Add(attempt->ranks, fact.attempt, used);
    for (const RankSlot& slot : fact.ranks) {
      if (slot.cpus != gang.per_worker.cpus || std::ssize(slot.gpus) != gang.per_worker.gpus ||
          slot.memory_bytes != gang.per_worker.memory_bytes || slot.gpu_percent != gang.gpu_percent)
        Report(ToString(fact.attempt) + " has a slot with other resources than its sweep wants");
    }
    Add(fact.ranks, fact.attempt, used);
    for (const auto& [name, use] : used) {
      const auto executor = books_.executors.find(name);
      if (executor == books_.executors.end() || executor->second.lost) {
        Report(ToString(fact.attempt) + " is assigned while slots are held on " + name +
               ", which does not exist");
        continue;
      }
      const Resources& total = executor->second.resources;
      if (use.held.cpus > total.cpus || use.held.memory_bytes > total.memory_bytes ||
          (!use.gpus.empty() && use.gpus.rbegin()->first >= total.gpus))
        Report(ToString(fact.attempt) + ": gangs hold more than the resources of " + name);
    }
  }

  // A gang spans several executors only if they allow it. Local ranks are counted on each executor.
  void CheckSpan(const AttemptAssigned& fact) {
    std::map<std::string, int> workers;
    for (const RankSlot& slot : fact.ranks) {
      if (slot.local_rank != workers[slot.executor]++)
        Report(ToString(fact.attempt) + " has wrong local ranks on " + slot.executor);
    }
    for (const auto& [name, count] : workers) {
      const auto executor = books_.executors.find(name);
      if (workers.size() > 1 && executor != books_.executors.end() && !executor->second.spans)
        Report(ToString(fact.attempt) + " has a part on " + name +
               ", which does not allow spanning gangs");
    }
  }

  // A gang uses only executors that are open to it and have the required labels.
  void CheckMayUse(const AttemptAssigned& fact, const GangSpec& gang) {
    for (const RankSlot& slot : fact.ranks) {
      const auto found = books_.executors.find(slot.executor);
      if (found == books_.executors.end()) continue;
      const ExecutorBook& executor = found->second;
      const char* closed_because = executor.drained       ? "is drained"
                                   : executor.unhealthy   ? "is unhealthy"
                                   : executor.quarantined ? "is quarantined"
                                   : executor.excluded.contains(fact.attempt.trial.sweep)
                                       ? "its sweep has excluded"
                                       : nullptr;
      if (closed_because != nullptr)
        Report(ToString(fact.attempt) + " starts on " + slot.executor + ", which " +
               closed_because);
      for (const auto& [name, values] : gang.required) {
        const auto label = found->second.labels.find(name);
        if (label == found->second.labels.end() || !values.contains(label->second))
          Report(ToString(fact.attempt) + " starts on " + slot.executor +
                 ", which lacks the required label " + name);
      }
    }
  }

  void Add(const std::vector<RankSlot>& ranks, const AttemptId& attempt,
           std::map<std::string, Use>& used) {
    for (const RankSlot& slot : ranks) {
      Use& use = used[slot.executor];
      use.held.cpus += slot.cpus;
      use.held.memory_bytes += slot.memory_bytes;
      for (int gpu : slot.gpus) {
        if ((use.gpus[gpu] += slot.gpu_percent) > 100)
          Report(ToString(attempt) + ": " + std::to_string(use.gpus[gpu]) + " % of GPU " +
                 std::to_string(gpu) + " of " + slot.executor + " are used");
      }
    }
  }

  void CheckNoSlotsHeld(const std::string& name, const std::string& event) {
    const auto executor = books_.executors.find(name);
    if (executor == books_.executors.end() || executor->second.lost) return;
    for (const AttemptBook* attempt : books_.LiveAttempts()) {
      if (std::ranges::any_of(attempt->ranks,
                              [&](const RankSlot& slot) { return slot.executor == name; }))
        Report("executor " + name + " " + event + " while " + ToString(attempt->id) +
               " holds slots on it");
    }
  }
};

}  // namespace

std::unique_ptr<Checker> CheckSlots(const Evidence& evidence) {
  return std::make_unique<Slots>(evidence);
}

}  // namespace attune::sim
