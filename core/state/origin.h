#pragma once

#include <optional>
#include <set>
#include <string>

#include "core/state/state.h"

namespace attune {

// What a trial's next attempt goes on from, and where that can be read.
struct Origin {
  const KeptCheckpoint* checkpoint = nullptr;  // null: from the beginning
  std::string reason;                          // why not from the newest one; empty: from that one
  std::optional<std::set<std::string>> readers;  // the executors that can read it; nullopt: all
};

// A checkpoint lies in the data folder of the executor that saved it, and every executor that says
// it has the same folder can read it (ExecutorJoined::folder); to the others one of these can send
// it. Without a word about the folder a checkpoint is taken to be readable everywhere, wherever its
// executor is.
//
// While no executor with the folder is there and one of them is not lost, the trial waits for that
// one: it may be back within its lease, and its progress is worth more than the wait. Once all of
// them are lost the checkpoint is unavailable, and the trial goes back to the newest of its own
// that is not, or to the beginning. That is no failure of its own, and is not counted as one.
Origin OriginOf(const State& state, const Trial& trial);

// Whether a gang on the executor reads the checkpoint at its path, so that it fetches no copy.
bool IsReadBy(const State& state, const KeptCheckpoint& kept, const Executor& executor);

// The checkpoint that the trial's live attempt goes on from, where rank 0 cannot read that and its
// executor has to fetch it first.
std::optional<CheckpointId> FetchedFor(const State& state, const Trial& trial);

}  // namespace attune
