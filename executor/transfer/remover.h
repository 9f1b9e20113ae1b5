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

// Deletes what the server wants to be gone, and what gangs leave that nobody needs, on a thread of
// its own: gigabytes take their time.
//
// Of what the server names as a checkpoint nothing is touched that lies outside of the data
// folder's checkpoints, and of what it names as a sweep nothing that is of another log.
class Remover {
 public:
  // Called on the remover's thread, once for each that is gone.
  struct Removed {
    std::function<void(const v1::CheckpointRemoval&)> checkpoint;
    std::function<void(uint64_t sweep)> sweep;
    std::function<void(const v1::CheckpointName&)> gone = {};  // LookFor has not found it
  };

  Remover(gang::Folders folders, Removed removed);
  ~Remover();  // finishes the deletion at hand, and of what was discarded

  // All that should be gone. What is under way or done is not done again; what failed is tried
  // again, now and each minute. Any thread.
  void Want(const Removals& removals);

  // Looks whether these checkpoints are there, after the deletion at hand. It forgets all other
  // deletions, because a lost part of the log may have wanted those that wait, and the server
  // ignores an answer that it gets from before the restore. Want() follows. Any thread.
  void LookFor(v1::Inventory inventory);

  // Deletes a folder that is known by no name, so that a half of one is no harm: it is tried once.
  // Any thread.
  void Discard(std::filesystem::path folder);

 private:
  struct Removal {
    std::string name;                  // for people, and one of its own
    std::filesystem::path folder;      // empty: it is not where it should be, and stays
    std::optional<uint64_t> identity;  // of a sweep: that its folder is marked with, or it stays
    bool is_lost = false;              // a sweep to be set aside
    std::function<void()> removed;
  };
  enum class State { kQueued, kDone, kFailed };
  struct Entry {
    Removal removal;
    State state = State::kQueued;
    bool complained = false;
  };

  std::string Remove(const Removal& removal) const;
  std::vector<Removal> ToRemovals(const Removals& removals) const;
  void Run();
  void Look(const v1::Inventory& inventory) const;
  void Queue(Entry& entry);
  void TryFailedAgain();
  void OnRemoved(const std::string& name, const std::string& problem);

  const gang::Folders folders_;
  const Removed removed_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Entry> known_;  // by name; those no longer wanted are forgotten
  std::deque<std::string> queue_;       // all under mutex_
  std::string at_hand_;                 // the name of what is being deleted
  std::deque<std::filesystem::path> discarded_;
  std::deque<v1::Inventory> inventories_;
  std::optional<std::chrono::steady_clock::time_point> try_again_at_;  // what has failed
  bool stop_ = false;

  std::thread thread_;  // last: it uses all of the above
};

// The sweeps of which there are files here, or what a deletion has left that was cut off.
std::set<SweepFiles> SweepsIn(const gang::Folders& folders);

}  // namespace attune::agent
