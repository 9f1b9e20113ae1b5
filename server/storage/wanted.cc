#include "server/storage/wanted.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/result.h"

namespace attune::server {

std::vector<WantedCopy> CopiesToContinue(const Sweep& sweep) {
  std::vector<WantedCopy> copies;
  for (const auto& [number, trial] : sweep.trials) {
    if (HasEnded(trial.state)) continue;
    const KeptCheckpoint* const kept = trial.ResumeCheckpoint();
    if (kept == nullptr) continue;
    const CheckpointId id =
        trial.cloned ? *trial.donor : CheckpointId{trial.id, kept->attempt, kept->ref.step};
    copies.push_back({.id = id,
                      .digest = kept->ref.digest,
                      .path = kept->ref.path,
                      .executor = kept->executor,
                      .folder = kept->folder,
                      .stored = kept->stored});
  }
  return copies;
}

std::vector<WantedCopy> MergeCopies(std::vector<WantedCopy> best, std::vector<WantedCopy> newest) {
  std::ranges::stable_sort(
      newest, [](const WantedCopy& a, const WantedCopy& b) { return a.id.step > b.id.step; });
  std::set<CheckpointId> known;
  std::vector<WantedCopy> merged;
  for (std::vector<WantedCopy>* list : {&best, &newest}) {
    for (WantedCopy& copy : *list) {
      if (copy.digest.empty() || copy.executor.empty() || !known.insert(copy.id).second) continue;
      copy.best = list == &best;
      merged.push_back(std::move(copy));
    }
  }
  return merged;
}

Result<WantedCopies> ReadWanted(SweepId id, Reader& reader, const StateQuery& query) {
  std::vector<WantedCopy> newest;
  std::map<std::string, std::string> folders;  // by executor
  WantedCopies wanted;
  query([&](const Brain& brain) {
    const State& state = brain.state();
    wanted.identity = IdentityOf(state, id);
    const Sweep* const sweep = state.Find(id);
    if (sweep != nullptr && !sweep->spec.storage.empty()) newest = CopiesToContinue(*sweep);
    for (const auto& [name, executor] : state.executors) folders[name] = executor.folder;
  });
  const auto row = reader.Sweep(id);
  if (!row.ok()) return row.error();
  wanted.address = row->spec.storage;
  wanted.ended = row->ended.value_or("");
  if (wanted.address.empty()) return wanted;

  std::vector<WantedCopy> best;
  for (const BestTrial& trial : row->front) {
    if (!trial.checkpoint) continue;
    const auto page = reader.Checkpoints(id, trial.trial, 1);
    if (!page.ok()) return page.error();
    for (const KeptRow& kept : page->checkpoints) {
      const CheckpointRow& checkpoint = kept.checkpoint;
      if (kept.trial != trial.trial || checkpoint.path != *trial.checkpoint) continue;
      best.push_back({.id = {{id, kept.trial}, checkpoint.attempt, checkpoint.step},
                      .digest = checkpoint.digest,
                      .path = checkpoint.path,
                      .executor = kept.executor,
                      .folder = folders[kept.executor],
                      .stored = checkpoint.stored});
    }
  }
  wanted.copies = MergeCopies(std::move(best), std::move(newest));
  return wanted;
}

}  // namespace attune::server
