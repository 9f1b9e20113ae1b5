#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "server/conductor/submissions.h"

namespace attune::server {

// What waits for the conductor: commands with their answers, of which each is decided only where
// the one before led to something; facts with theirs; a look; or, with nothing in it, a nudge.
struct Submission {
  std::vector<Command> commands;
  std::string actor;  // who asks; empty: as Brain::Execute has it
  Done done;          // of each of them, in turn
  Stored stored;      // of all of them
  Look look;
  bool ends_only = false;  // Submissions::RecordEnds
};

// Of one batch, which is one transaction; a submission is never split.
inline constexpr size_t kBatchCommands = 8192;

// So many commands may wait. Who could ask again later is then refused; who is slowed down in
// another way (facts: their stream is not read on) and what the server itself asks is not counted
// out.
inline constexpr size_t kQueueCommands = 32'768;

// In order, and one thread at a time.
class Queue {
 public:
  void Push(Submission submission);
  std::vector<Submission> TakeBatch();
  bool empty() const { return waiting_.empty(); }
  bool full() const { return commands_ >= kQueueCommands; }

 private:
  std::deque<Submission> waiting_;
  size_t commands_ = 0;
};

}  // namespace attune::server
