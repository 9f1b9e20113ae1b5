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

// Facts in the order in which they happened, numbered from 1 and kept until the server has
// acknowledged them.
//
// While the server is away they gather here: for a gang that makes a report a second, about 100
// bytes a second, and never for longer than the lease.
class Outbox {
 public:
  void Add(v1::Fact fact);

  // The facts that the present connection has not been given yet, as many as fit a message; at
  // least one if there is any.
  v1::Facts TakeBatch();
  bool has_unsent() const { return sent_ < facts_.size(); }

  // A new connection: everything not acknowledged goes out again.
  void Rewind() { sent_ = 0; }

  // Forgets the facts up to `seq`. Returns the attempts whose end was among them.
  std::vector<gang::AttemptId> Acknowledge(uint64_t seq);

  bool empty() const { return facts_.empty(); }

 private:
  std::deque<v1::Fact> facts_;
  size_t sent_ = 0;  // of facts_, from the front
  uint64_t last_seq_ = 0;
};

}  // namespace attune::agent
