#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "executor/gang/folders.h"
#include "executor/transfer/removals.h"

namespace attune::agent {

// Deletes files that the server wants to be deleted, and files that gangs leave, on its own thread,
// because gigabytes take long.
//
// It deletes a checkpoint only inside the data folder's checkpoints, and a sweep only if it belongs
// to the server's log.
class Remover {
 public:
  // Called on the remover's thread, once for each deletion.
  struct Removed {
    std::function<void(const v1::CheckpointRemoval&)> checkpoint;
    std::function<void(uint64_t sweep)> sweep;
    std::function<void(const v1::CheckpointName&)> gone = {};  // FindMissing() has not found it
  };

  Remover(gang::Folders folders, Removed removed);
  ~Remover();  // finishes the current deletion and all discarded folders

  // Sets everything that must be deleted. Deletions that are done or in progress are not repeated.
  // Failed ones are retried now and every minute. Thread-safe.
  void SetRemovals(const Removals& removals);

  // Checks after the current deletion whether these checkpoints exist. Forgets all other deletions:
  // a lost part of the log may have requested them, and the server ignores answers from before the
  // restore. SetRemovals() follows. Thread-safe.
  void FindMissing(v1::Inventory inventory);

  // Deletes a folder that nothing refers to. It is tried only once, because a partly deleted folder
  // does no harm. Thread-safe.
  void Discard(std::filesystem::path folder);

 private:
  struct Removal {
    std::string name;              // unique; for messages
    std::filesystem::path folder;  // empty: the path is not valid, so nothing is deleted
    // For a sweep: its folder is deleted only if it has this mark.
    std::optional<uint64_t> identity;
    bool is_lost = false;  // a sweep that must be set aside
    std::function<void()> removed;
  };
  enum class State { kQueued, kDone, kFailed };
  struct Entry {
    Removal removal;
    State state = State::kQueued;
    bool is_failure_logged = false;
  };

  std::string Remove(const Removal& removal) const;
  std::vector<Removal> ToRemovals(const Removals& removals) const;
  void Run();
  void ReportMissing(const v1::Inventory& inventory) const;
  void Queue(Entry& entry);
  void TryFailedAgain();
  void OnRemoved(const std::string& name, const std::string& problem);

  const gang::Folders folders_;
  const Removed removed_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Entry> entries_;  // by name; entries that are no longer wanted are erased
  std::deque<std::string> queue_;         // this and the members around it: under mutex_
  std::string current_;                   // name of the current deletion
  std::deque<std::filesystem::path> discarded_;
  std::deque<v1::Inventory> inventories_;
  // Time to retry failed deletions.
  std::optional<std::chrono::steady_clock::time_point> try_again_at_;
  bool stop_ = false;

  std::thread thread_;  // declared last: it uses all members above
};

// Lists the sweeps with files in the data folder, including files that an interrupted deletion has
// left.
std::set<SweepFiles> ListSweeps(const gang::Folders& folders);

}  // namespace attune::agent
