#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "checkpoints/piece.h"

namespace attune::checkpoints {

// Does the same with piece after piece, on a thread of its own.
class Worker {
 public:
  // So many pieces wait for it: it has work while others wait for their turn on a processor.
  static constexpr size_t kWaitingMax = 4;
  // So many are in use at once: those that wait, the one that is worked on, and the one to be
  // handed next.
  static constexpr size_t kPieces = kWaitingMax + 2;

  explicit Worker(std::function<void(const Piece&)> work)
      : work_(std::move(work)), thread_([this] { Run(); }) {}
  ~Worker();  // once it has done with all

  // Waits for room. The piece stays as it is until kPieces - 1 others have been handed after it.
  void Hand(const Piece& piece);

 private:
  void Run();

  const std::function<void(const Piece&)> work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<const Piece*> waiting_;  // under mutex_, as is the next
  bool ends_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace attune::checkpoints
