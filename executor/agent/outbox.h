#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "attune/v1/executor.pb.h"
#include "executor/gang/spec.h"

namespace attune::agent {

inline constexpr int kFactsPerMessage = 512;
inline constexpr size_t kFactBytesPerMessage = 1 << 20;
// Limit for facts that were sent but not acknowledged. The rest waits, so that heartbeats never
// queue behind facts that the server does not read.
inline constexpr size_t kUnacknowledgedBytesMax = 2 << 20;
// Memory limit for all facts in the outbox. Above it, the agent stops reading from workers.
inline constexpr size_t kOutboxBytesMax = 64 << 20;
// Per fact in memory, in addition to its encoded size.
inline constexpr size_t kFactOverheadBytes = 256;

// A queue of facts in the order in which they happened, numbered from 1 and kept until the server
// acknowledges them.
//
// While the server is away, facts accumulate for at most one lease: about 100 bytes a second for a
// gang that reports once a second. If the server answers but its disk is full or slow, many facts
// may accumulate; then is_full() asks the caller to slow down.
class Outbox {
 public:
  void Add(v1::Fact fact);

  // The next facts that were not sent on this connection, as many as fit into a message; at least
  // one if any is unsent.
  v1::Facts TakeBatch();
  bool may_send() const { return has_unsent() && sent_bytes_ < kUnacknowledgedBytesMax; }
  size_t unacknowledged() const { return sent_; }  // number of facts sent but not acknowledged

  // Marks all unacknowledged facts as unsent.
  void Rewind() { sent_ = sent_bytes_ = 0; }

  // Removes the facts up to `seq`. Returns the attempts whose end was among them.
  std::vector<gang::AttemptId> Acknowledge(uint64_t seq);

  bool empty() const { return facts_.empty(); }

  // True from kOutboxBytesMax bytes on, until less than half of that is left.
  bool is_full() const { return full_; }

 private:
  struct Entry {
    v1::Fact fact;
    size_t bytes = 0;  // on the wire
  };

  bool has_unsent() const { return sent_ < facts_.size(); }
  void UpdateFull();

  std::deque<Entry> facts_;
  size_t sent_ = 0;        // number of sent facts at the front of facts_
  size_t sent_bytes_ = 0;  // size of the sent facts
  size_t memory_bytes_ = 0;
  bool full_ = false;
  uint64_t last_seq_ = 0;
};

}  // namespace attune::agent
