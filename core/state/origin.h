#pragma once

#include <optional>
#include <set>
#include <string>

#include "core/state/state.h"

namespace attune {

// The checkpoint from which a trial's next attempt resumes, and the executors that can read it.
struct Origin {
  const KeptCheckpoint* checkpoint = nullptr;  // null: the attempt begins from the start
  std::string reason;                          // why it is not the newest checkpoint; empty: it is
  std::optional<std::set<std::string>> readers;  // the executors that can read it; nullopt: all
  bool is_stored = false;                        // every executor can fetch it from an object store
};

// A checkpoint is in the data folder of the executor that saved it. Every executor with the same
// folder (ExecutorJoined::folder) can read it, and can send it to the others. If the folder is
// unknown, the checkpoint counts as readable everywhere.
//
// If no executor with the folder is connected, but one of them is not lost, the trial waits for it:
// the executor may come back within its lease, and the progress is worth the wait. When all of them
// are lost, the checkpoint is unavailable. The trial then resumes from its newest available
// checkpoint, or from the start. This does not count as a failure of the trial.
//
// If an object store has a copy (KeptCheckpoint::stored), the checkpoint is always available, and
// the trial does not wait.
Origin OriginOf(const State& state, const Trial& trial);

// Whether a gang on the executor can read the checkpoint at its path, without fetching a copy.
bool IsReadBy(const State& state, const KeptCheckpoint& kept, const Executor& executor);

// The checkpoint that the executor of rank 0 must fetch before the trial's live attempt can resume
// from it; nullopt: none.
std::optional<CheckpointId> CheckpointToFetch(const State& state, const Trial& trial);

}  // namespace attune
