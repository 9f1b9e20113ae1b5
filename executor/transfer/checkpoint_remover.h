#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "attune/v1/executor.pb.h"
#include "executor/gang/folders.h"

namespace attune::agent {

// Deletes checkpoints on a thread of its own: gigabytes take their time.
//
// A checkpoint is renamed to a hidden name first, so that a crash never leaves half of one under
// its full name. What lies outside of the data folder's checkpoints is never touched.
class CheckpointRemover {
 public:
  // `removed` is called on the remover's thread, once for each checkpoint that is gone.
  using Removed = std::function<void(const v1::CheckpointRemoval&)>;

  CheckpointRemover(gang::Folders folders, Removed removed);
  ~CheckpointRemover();  // finishes the deletion at hand

  // All that should be gone. What is under way or done is not done again; what failed is tried
  // again. Any thread.
  void Want(const google::protobuf::RepeatedPtrField<v1::CheckpointRemoval>& removals);

 private:
  enum class State { kQueued, kDone, kFailed };
  struct Entry {
    State state = State::kQueued;
    bool complained = false;
  };

  void Run();
  void OnRemoved(const std::string& path, const std::string& problem);

  const gang::Folders folders_;
  const Removed removed_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<v1::CheckpointRemoval> queue_;  // under mutex_, as is all below
  std::map<std::string, Entry> known_;       // by path; those no longer wanted are forgotten
  bool stop_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace attune::agent
