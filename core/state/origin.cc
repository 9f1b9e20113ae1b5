#include "core/state/origin.h"

#include <utility>

namespace attune {
namespace {

// The data folder that holds the checkpoint; empty: unknown.
std::string FolderOf(const State& state, const KeptCheckpoint& kept) {
  if (!kept.folder.empty()) return kept.folder;
  const auto executor = state.executors.find(kept.executor);
  return executor == state.executors.end() ? "" : executor->second.folder;
}

std::string Text(const KeptCheckpoint& kept) {
  return "the checkpoint of step " + std::to_string(kept.ref.step.value);
}

}  // namespace

Origin OriginOf(const State& state, const Trial& trial) {
  const KeptCheckpoint* newest = trial.ResumeCheckpoint();
  Origin origin;
  if (newest == nullptr) return origin;
  const auto available = [&](const KeptCheckpoint& kept) {
    const std::string folder = FolderOf(state, kept);
    if (folder.empty()) return true;
    origin.is_stored = !kept.stored.empty();
    const auto readers = state.folders.find(folder);
    if (readers == state.folders.end()) return origin.is_stored;
    origin.readers = readers->second;
    return true;
  };
  if (available(*newest)) {
    origin.checkpoint = newest;
    return origin;
  }
  for (auto kept = trial.checkpoints.rbegin(); kept != trial.checkpoints.rend(); ++kept) {
    if (!trial.CanResumeFrom(*kept) || !available(*kept)) continue;
    origin.checkpoint = &*kept;
    break;
  }
  origin.reason = Text(*newest) + " is on executor " + newest->executor +
                  ", which is lost; the trial continues from " +
                  (origin.checkpoint != nullptr ? Text(*origin.checkpoint) : "the beginning");
  return origin;
}

bool IsReadBy(const State& state, const KeptCheckpoint& kept, const Executor& executor) {
  if (kept.folder == kNoFolder) return false;
  const std::string folder = FolderOf(state, kept);
  return folder.empty() || executor.folder.empty() || folder == executor.folder;
}

std::optional<CheckpointId> CheckpointToFetch(const State& state, const Trial& trial) {
  if (!trial.live || !trial.live->resume || trial.live->ranks.empty()) return std::nullopt;
  const auto executor = state.executors.find(trial.live->ranks.front().executor);
  if (executor == state.executors.end()) return std::nullopt;
  const auto lies_elsewhere = [&](const KeptCheckpoint& kept) {
    return kept.ref == *trial.live->resume && !IsReadBy(state, kept, executor->second);
  };
  if (trial.cloned && trial.donor && lies_elsewhere(*trial.cloned)) return trial.donor;
  for (const KeptCheckpoint& kept : trial.checkpoints) {
    if (lies_elsewhere(kept)) return CheckpointId{trial.id, kept.attempt, kept.ref.step};
  }
  return std::nullopt;
}

}  // namespace attune
