#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "attune/v1/executor.pb.h"
#include "core/base/result.h"

namespace attune::server {

// So many readers of executors' checkpoints wait at once, at most: each holds a thread, and of
// memory as much as a piece has.
inline constexpr size_t kPieceRequestsMax = 16;
inline constexpr std::chrono::seconds kPiecePatience{25};

// What executors were asked for of checkpoints and have not brought yet. Any thread.
class PieceRequests {
 public:
  using Ask = std::function<bool(uint64_t request)>;

  // Calls `ask` with a new number, and waits for that answer. kUnavailable: `ask` says false, the
  // executor goes away, it takes too long, or too many wait already. kNotFound: it cannot read it.
  Result<v1::CheckpointPiece> Await(const std::string& executor, const Ask& ask);

  void OnPiece(const v1::CheckpointPiece& piece);  // one that nobody waits for is dropped
  void OnGone(const std::string& executor);        // its stream is closed

 private:
  struct Waiting {
    std::string executor;
    std::optional<v1::CheckpointPiece> piece;
    bool gone = false;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Waiting> waiting_;  // under mutex_
  uint64_t last_ = 0;
};

}  // namespace attune::server
