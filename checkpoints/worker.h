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

// Calls a function with each piece, in a separate thread.
class Worker {
 public:
  // Maximum number of waiting pieces. With several, the worker has work although the thread that
  // adds pieces may wait for a processor.
  static constexpr size_t kWaitingMax = 4;
  // Number of pieces in use at once: the waiting pieces, the piece in work, and the next piece.
  static constexpr size_t kPieces = kWaitingMax + 2;

  explicit Worker(std::function<void(const Piece&)> work)
      : work_(std::move(work)), thread_([this] { Run(); }) {}
  ~Worker();  // waits until all pieces are done

  // Waits while kWaitingMax pieces wait. The caller must not change the piece until it has added
  // kPieces - 1 more pieces.
  void Add(const Piece& piece);

 private:
  void Run();

  const std::function<void(const Piece&)> work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<const Piece*> waiting_;  // protected by mutex_, like ends_
  bool ends_ = false;
  std::thread thread_;  // last member: the thread uses all others
};

}  // namespace attune::checkpoints
