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
// What is sent and not acknowledged. More waits here, so that heartbeats never queue behind facts
// that the server does not read.
inline constexpr size_t kUnacknowledgedBytesMax = 2 << 20;
// All that waits here, in memory. Beyond it workers are not read on.
inline constexpr size_t kOutboxBytesMax = 64 << 20;
inline constexpr size_t kFactOverheadBytes = 256;  // in memory, beside its bytes on the wire

// Facts in the order in which they happened, numbered from 1 and kept until the server has
// acknowledged them.
//
// While the server is away they gather here: for a gang that reports or logs once a second, about
// 100 bytes a second, and never for longer than the lease. While the server answers and its disk is
// full or slow, they may be many: then is_full() says that no more should be made.
class Outbox {
 public:
  void Add(v1::Fact fact);

  // The facts that the present connection has not been given yet, as many as fit a message; at
  // least one if there is any.
  v1::Facts TakeBatch();
  bool may_send() const { return has_unsent() && sent_bytes_ < kUnacknowledgedBytesMax; }
  size_t unacknowledged() const { return sent_; }  // of the facts given out

  // Everything not acknowledged goes out again.
  void Rewind() { sent_ = sent_bytes_ = 0; }

  // Forgets the facts up to `seq`. Returns the attempts whose end was among them.
  std::vector<gang::AttemptId> Acknowledge(uint64_t seq);

  bool empty() const { return facts_.empty(); }

  // From kOutboxBytesMax on until half of that is left.
  bool is_full() const { return full_; }

 private:
  struct Entry {
    v1::Fact fact;
    size_t bytes = 0;  // on the wire
  };

  bool has_unsent() const { return sent_ < facts_.size(); }
  void Weigh();

  std::deque<Entry> facts_;
  size_t sent_ = 0;        // of facts_, from the front
  size_t sent_bytes_ = 0;  // of those
  size_t memory_bytes_ = 0;
  bool full_ = false;
  uint64_t last_seq_ = 0;
};

}  // namespace attune::agent
