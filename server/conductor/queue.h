#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "server/conductor/submissions.h"

namespace attune::server {

// A request that waits for the conductor: commands with their answers, facts with one answer, or a
// look. A submission without any of these makes the conductor check what can start. A command with
// an answer is decided only if the one before it caused an event.
struct Submission {
  std::vector<Command> commands;
  std::string actor;  // the client; empty: see Brain::Execute
  Done done;          // called for each command in turn
  Stored stored;      // called once for all
  StateReader look;
  bool ends_only = false;  // Submissions::RecordEnds
};

// The limit of one batch, which is one transaction. A submission is never split.
inline constexpr size_t kBatchCommands = 8192;

// The number of waiting commands from which on Execute refuses clients, who can ask again. Facts
// and the server's own commands are never refused; facts are slowed down by not reading their
// stream.
inline constexpr size_t kQueueCommands = 32'768;

// A queue in order of arrival. Not thread-safe.
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
