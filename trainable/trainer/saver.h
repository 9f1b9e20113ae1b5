#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "attune/checkpoint.h"
#include "trainable/channel/channel.h"
#include "trainable/channel/messages.h"

namespace attune::inline sdk::trainable {

// Makes rank 0's checkpoints durable while training goes on, and what rank 0 says about its steps
// wait for it: a report never arrives before the checkpoint of its step.
//
// Files need no copy in memory for that. They have been written when a checkpoint comes here, so
// the system has their contents; what takes long is the disk and the hashes.
//
// A checkpoint that cannot be made durable ends the rank, as an exception that nobody catches.
// Where training has to wait for one, the executor is told that this may take a while.
//
// Functions are called from the thread that runs the training code.
class Saver {
 public:
  // Of lines that may wait for one checkpoint; then training waits too.
  static constexpr std::size_t kMaxWaitingBytes = 64 << 20;

  explicit Saver(Channel& channel) : channel_(channel) {}
  ~Saver();

  // REQUIRES: Drain() since the checkpoint before.
  void Commit(std::unique_ptr<CheckpointWriter> writer);

  // Sends a report, once the checkpoint before it is durable, and the progress of its step. Only
  // one that waits for a verdict is urgent.
  void Send(const ReportLine& report, std::string progress);

  // What the rank has announced from here on, and announces itself. Lines that were held back are
  // signs of life, which end a silence; it is announced again after them.
  void NoteSilence(std::chrono::milliseconds silence);

  // Returns once the last checkpoint is durable and all lines are with the channel.
  void Drain();

 private:
  void Run();
  template <typename Condition>
  void Await(std::unique_lock<std::mutex>& lock, Condition condition);

  Channel& channel_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<CheckpointWriter> writer_;  // guarded by mutex_, as is all below; null: idle
  std::string waiting_;
  std::chrono::steady_clock::time_point silent_until_;
  bool stop_ = false;
  std::thread thread_;  // started with the first checkpoint
};

}  // namespace attune::inline sdk::trainable
