#include <algorithm>
#include <map>
#include <set>

#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// Slots are held once, GPUs are whole or shared out once, and a gang gets a slot for every rank on
// executors that are there, or nothing.
class Slots final : public Checker {
 public:
  using Checker::Checker;

  void OnEvent(const Event& event) override {
    if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact)) Assigned(*assigned);
    if (const auto* lost = std::get_if<ExecutorLost>(&event.fact)) Free(lost->name, "is lost");
    if (const auto* joined = std::get_if<ExecutorJoined>(&event.fact)) Free(joined->name, "joins");
  }

 private:
  struct Use {
    Resources held;
    std::map<int, int> gpus;  // in percent
  };

  void Assigned(const AttemptAssigned& fact) {
    const SweepBook* sweep = books_.Find(fact.attempt.trial.sweep);
    if (sweep == nullptr) return Find(ToString(fact.attempt) + " is of no sweep");
    const GangSpec& gang = sweep->spec.gang;
    const bool external = sweep->spec.External();
    const int least = gang.min_workers > 0 ? gang.min_workers : gang.workers;
    CheckSpan(fact);
    CheckWelcome(fact, gang);
    if (std::ssize(fact.ranks) < (external ? 0 : least) ||
        std::ssize(fact.ranks) > (external ? 0 : gang.workers))
      Find(ToString(fact.attempt) + " has slots for " + std::to_string(fact.ranks.size()) +
           " ranks, of " + std::to_string(least) + " to " + std::to_string(gang.workers));

    std::map<std::string, Use> used;
    for (const AttemptBook* attempt : books_.Live()) Add(attempt->ranks, fact.attempt, used);
    for (const RankSlot& slot : fact.ranks) {
      if (slot.cpus != gang.per_worker.cpus || std::ssize(slot.gpus) != gang.per_worker.gpus ||
          slot.memory_bytes != gang.per_worker.memory_bytes || slot.gpu_percent != gang.gpu_percent)
        Find(ToString(fact.attempt) + " has another slot than its sweep asks for");
    }
    Add(fact.ranks, fact.attempt, used);
    for (const auto& [name, use] : used) {
      const auto executor = books_.executors.find(name);
      if (executor == books_.executors.end() || executor->second.lost) {
        Find(ToString(fact.attempt) + " is assigned while slots are held on " + name +
             ", which is not there");
        continue;
      }
      const Resources& total = executor->second.resources;
      if (use.held.cpus > total.cpus || use.held.memory_bytes > total.memory_bytes ||
          (!use.gpus.empty() && use.gpus.rbegin()->first >= total.gpus))
        Find(ToString(fact.attempt) + ": more is held on " + name + " than there is");
    }
  }

  // Only over executors that say they can, and with local ranks counted on each.
  void CheckSpan(const AttemptAssigned& fact) {
    std::map<std::string, int> workers;
    for (const RankSlot& slot : fact.ranks) {
      if (slot.local_rank != workers[slot.executor]++)
        Find(ToString(fact.attempt) + " counts its ranks on " + slot.executor + " wrongly");
    }
    for (const auto& [name, count] : workers) {
      const auto executor = books_.executors.find(name);
      if (workers.size() > 1 && executor != books_.executors.end() && !executor->second.spans)
        Find(ToString(fact.attempt) + " has a part on " + name + ", which spans nothing");
    }
  }

  // Only on executors that have what the gang asks for, and that nothing has closed.
  void CheckWelcome(const AttemptAssigned& fact, const GangSpec& gang) {
    for (const RankSlot& slot : fact.ranks) {
      const auto found = books_.executors.find(slot.executor);
      if (found == books_.executors.end()) continue;
      const ExecutorBook& executor = found->second;
      const char* why = executor.drained       ? "is drained"
                        : executor.unhealthy   ? "is unhealthy"
                        : executor.quarantined ? "is quarantined"
                        : executor.excluded.contains(fact.attempt.trial.sweep)
                            ? "its sweep excludes"
                            : nullptr;
      if (why != nullptr)
        Find(ToString(fact.attempt) + " starts on " + slot.executor + ", which " + why);
      for (const auto& [name, values] : gang.required) {
        const auto label = found->second.labels.find(name);
        if (label == found->second.labels.end() || !values.contains(label->second))
          Find(ToString(fact.attempt) + " starts on " + slot.executor +
               ", which has not the label " + name + " that it asks for");
      }
    }
  }

  void Add(const std::vector<RankSlot>& ranks, const AttemptId& why,
           std::map<std::string, Use>& used) {
    for (const RankSlot& slot : ranks) {
      Use& use = used[slot.executor];
      use.held.cpus += slot.cpus;
      use.held.memory_bytes += slot.memory_bytes;
      for (int gpu : slot.gpus) {
        if ((use.gpus[gpu] += slot.gpu_percent) > 100)
          Find(ToString(why) + ": of GPU " + std::to_string(gpu) + " of " + slot.executor + " " +
               std::to_string(use.gpus[gpu]) + " % are held");
      }
    }
  }

  void Free(const std::string& name, const std::string& what) {
    const auto executor = books_.executors.find(name);
    if (executor == books_.executors.end() || executor->second.lost) return;
    for (const AttemptBook* attempt : books_.Live()) {
      if (std::ranges::any_of(attempt->ranks,
                              [&](const RankSlot& slot) { return slot.executor == name; }))
        Find("executor " + name + " " + what + " while " + ToString(attempt->id) +
             " holds slots there");
    }
  }
};

}  // namespace

std::unique_ptr<Checker> CheckSlots(const Evidence& evidence) {
  return std::make_unique<Slots>(evidence);
}

}  // namespace attune::sim
