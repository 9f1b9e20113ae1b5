#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "executor/gang/spec.h"
#include "tests/sim/checkers/findings.h"

namespace attune::sim {

// The gangs and files that the hosts really have, independent of the server's state. It reports a
// trial that runs twice, an overused GPU, and a gang whose checkpoint is missing.
class Reality {
 public:
  explicit Reality(Findings& findings) : findings_(findings) {}

  // `folder` is Hello.folder of the host.
  void OnHostStarted(const std::string& executor, const std::string& folder) {
    folders_[executor] = folder;
  }
  // A part of a gang starts. Its rank 0 reads the checkpoint from the host's folder or fetches it.
  void OnGangStarted(const std::string& executor, const gang::GangSpec& spec);
  // Whether a connected host has the file and can send it.
  bool CanBeFetched(const std::string& path) const;
  // Whether the host has the file in its own folder.
  bool CanRead(const std::string& executor, const std::string& path) const;
  void OnGangEnded(Epoch epoch, const std::string& executor);
  void OnWrongRendezvous(const AttemptId& attempt);  // a part got a wrong address of rank 0
  // The host of this gang was frozen for longer than its lease. The gang will be torn down before
  // it trains another step, so other attempts need not wait for its end.
  void MarkDoomed(Epoch epoch, const std::string& executor);
  // Freezes or thaws a host.
  void SetFrozen(const std::string& executor, bool frozen);
  // Whether the gang, or its part on one executor, has processes that can train.
  bool IsRunning(Epoch epoch) const;
  bool IsRunning(Epoch epoch, const std::string& executor) const;

  // In a gang on several hosts, the other parts see whether rank 0 has left.
  void OnRankZeroLeft(Epoch epoch) { left_.insert(epoch); }
  bool HasRankZeroLeft(Epoch epoch) const { return left_.contains(epoch); }

  // The server started or crashed, or a fault hit a host or its connection.
  void OnServerStarted(Time now) { server_up_since_ = now; }
  void OnServerCrashed() { server_up_since_.reset(); }
  void OnDisturbance(const std::string& executor, Time until) {
    disturbed_[executor] = std::max(disturbed_[executor], until);
  }
  // The executor tears down its gangs, because the server has not answered for the time of a lease.
  void OnLeaseLost(const std::string& executor, Time now);

  // The server told a process that a newer one has its name. That is wrong, because each host runs
  // only one process at a time.
  void OnSuperseded(const std::string& executor);

  void OnConnected(const std::string& executor, Time now) { connected_[executor] = now; }
  void OnDisconnected(const std::string& executor) { connected_.erase(executor); }
  // The time at which the executor connected; null if it is not connected.
  const Time* ConnectedSince(const std::string& executor) const;

  // The executors that the server could reach at its last decision.
  void SetReachable(std::set<std::string> executors) { reachable_ = std::move(executors); }
  bool IsReachable(const std::string& executor) const { return reachable_.contains(executor); }

  // A gang could not save because the disk was full, or was ended because it filled the disk.
  void OnDiskFull(Epoch epoch) { found_disk_full_.insert(epoch); }
  bool FoundDiskFull(Epoch epoch) const { return found_disk_full_.contains(epoch); }
  void OnDiskFilled(Epoch epoch) { filled_disk_.insert(epoch); }
  bool FilledDisk(Epoch epoch) const { return filled_disk_.contains(epoch); }

  void OnReported(Epoch epoch, Step step) { reports_.emplace(epoch, step); }
  bool HasReported(Epoch epoch, Step step) const { return reports_.contains({epoch, step}); }

  // An attempt saved a file. Two attempts must never use the same path. `is_lost`: a restored log
  // does not know the attempt.
  void OnFileSaved(const std::string& path, const std::string& executor, bool is_lost);
  // Whether an attempt that a restored log does not know saved this file.
  bool IsOfLostAttempt(const std::string& path) const { return of_lost_attempts_.contains(path); }
  // Deletes old files before a gang starts, like gang/set_aside.h: files of another log's sweep
  // with the same number, and checkpoints of this trial that the log does not know.
  void OnFoldersClaimed(const std::string& executor, const gang::GangSpec& spec);
  // After a restore, the log lists this checkpoint but its file is missing. No executor reports
  // that.
  void OnFileLost(const std::string& path) { lost_files_.insert(path); }
  bool IsLost(const std::string& path) const { return lost_files_.contains(path); }
  // After a restore, the file of any checkpoint to resume from may be missing.
  void OnLogRestored() {
    restored_ = true;
    missing_found_at_.clear();
  }
  bool WasLogRestored() const { return restored_; }
  // After a restore, the executor has looked for missing files and reports them.
  void OnMissingFilesFound(const std::string& executor, Time now) {
    missing_found_at_[executor] = now;
  }
  // When it did so last; the end of time if it has not done so since the restore.
  Time MissingFilesFoundAt(const std::string& executor) const {
    const auto found = missing_found_at_.find(executor);
    return found == missing_found_at_.end() ? Time{std::numeric_limits<int64_t>::max()}
                                            : found->second;
  }
  void OnFileDeleted(const std::string& path) { files_.erase(path); }
  // The executor deleted all files below this path in its folder.
  void SweepDeleted(const std::string& path, const std::string& executor);
  bool HasFile(const std::string& path) const { return files_.contains(path); }

  // An object store has a copy of the checkpoint with this digest.
  void OnStored(const std::string& digest) { stored_.insert(digest); }
  bool IsStored(const std::string& digest) const { return stored_.contains(digest); }

 private:
  struct Gang {
    AttemptId attempt;
    std::string executor;
    std::vector<int> ranks;
    std::map<int, int> gpus;  // GPU to percent
    bool doomed = false;
  };

  bool CanTrain(const Gang& gang) const { return !gang.doomed && !frozen_.contains(gang.executor); }

  Findings& findings_;
  std::map<std::pair<Epoch, std::string>, Gang> gangs_;  // all parts
  std::set<Epoch> left_;
  std::set<std::string> frozen_;
  std::set<std::string> reachable_;
  std::optional<Time> server_up_since_;
  std::map<std::string, Time> disturbed_;
  std::map<std::string, Time> connected_;
  std::set<std::pair<Epoch, Step>> reports_;
  std::set<Epoch> found_disk_full_;
  std::set<Epoch> filled_disk_;
  std::map<std::string, std::string> folders_;                  // by host
  std::map<std::string, std::string> files_;                    // path to folder
  std::map<std::pair<std::string, uint64_t>, uint64_t> marks_;  // log identity, by folder and sweep
  std::set<std::pair<std::string, uint64_t>> claims_;           // folder and epoch of each attempt
  std::set<std::string> stored_;
  std::set<std::string> lost_files_;
  std::map<std::string, Time> missing_found_at_;  // by executor
  std::set<std::string> of_lost_attempts_;
  bool restored_ = false;
};

}  // namespace attune::sim
