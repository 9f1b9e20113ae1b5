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

// Makes rank 0's checkpoints durable during training. Rank 0's reports wait for it: a report never
// arrives before the checkpoint of its step.
//
// The files of a checkpoint are already written when Commit() is called. Their contents are with
// the operating system, so no copy in memory is needed. Syncing and hashing them takes long.
//
// If a checkpoint cannot be made durable, an uncaught exception ends the rank. If training must
// wait for a checkpoint, the executor gets a heartbeat that announces the silence.
//
// Functions are called from the thread that runs the training code.
class Saver {
 public:
  // The limit for lines that wait for one checkpoint. Above it, training waits too.
  static constexpr std::size_t kMaxWaitingBytes = 64 << 20;

  explicit Saver(Channel& channel) : channel_(channel) {}
  ~Saver();

  // REQUIRES: Drain() since the previous checkpoint.
  void Commit(std::unique_ptr<CheckpointWriter> writer);

  // Sends a report after the previous checkpoint is durable, and the progress of its step. Only a
  // report that waits for a verdict is urgent.
  void Send(const ReportLine& report, std::string progress);

  // Records the silence that the rank has announced. Sending held-back lines ends a silence, so the
  // saver announces the rest of it again afterwards.
  void NoteSilence(std::chrono::milliseconds silence);

  // Returns when the last checkpoint is durable and all lines are passed to the channel.
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
