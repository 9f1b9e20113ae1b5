#pragma once

#include <algorithm>
#include <cstdint>
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

// What the hosts really run and hold, whatever the server believes. It finds a trial that
// runs twice, a GPU with two gangs, and a gang whose checkpoint is gone.
class Reality {
 public:
  explicit Reality(Findings& findings) : findings_(findings) {}

  // `folder`: of that host (Hello.folder).
  void HostStarts(const std::string& executor, const std::string& folder) {
    folders_[executor] = folder;
  }
  // A part of a gang, whose rank 0 reads its checkpoint there or has it fetched.
  void GangStarts(const std::string& executor, const gang::GangSpec& spec);
  // Whether a host that has the file is connected, and can send it.
  bool IsSent(const std::string& path) const;
  // Whether the host has the file in its own folder.
  bool Reads(const std::string& executor, const std::string& path) const;
  void GangGone(Epoch epoch, const std::string& executor);
  void MeetsAmiss(const AttemptId& attempt);  // a part was told to meet where rank 0 is not
  // The host of this gang stood still for longer than its lease: it is torn down before it trains
  // another step, and nobody else has to wait for that.
  void GangDoomed(Epoch epoch, const std::string& executor);
  // Nothing moves on this host, or does again.
  void HostStandsStill(const std::string& executor, bool still);
  // Whether its processes are there and move.
  bool Runs(Epoch epoch) const;  // any part of it
  bool Runs(Epoch epoch, const std::string& executor) const;

  // What the other parts of a gang over several hosts see of rank 0.
  void RankZeroLeft(Epoch epoch) { left_.insert(epoch); }
  bool HasRankZeroLeft(Epoch epoch) const { return left_.contains(epoch); }

  // The server's process listens from now on, or is gone; something befalls a host, or its
  // connection.
  void ServerListens(Time now) { listens_since_ = now; }
  void ServerDies() { listens_since_.reset(); }
  void Disturbed(const std::string& executor, Time until) {
    disturbed_[executor] = std::max(disturbed_[executor], until);
  }
  // Its gangs are torn down, because nobody has answered it for a lease.
  void LosesLease(const std::string& executor, Time now);

  // A process, of which there is one a host at a time, is told that there is a newer one.
  void IsSuperseded(const std::string& executor);

  void Connects(const std::string& executor, Time now) { connected_[executor] = now; }
  void Disconnects(const std::string& executor) { connected_.erase(executor); }
  // Since when its connection stands; null: it has none.
  const Time* ConnectedSince(const std::string& executor) const;

  // Which executors the server could reach when it decided last.
  void ServerSees(std::set<std::string> executors) { seen_ = std::move(executors); }
  bool IsSeen(const std::string& executor) const { return seen_.contains(executor); }

  // A gang found the disk of its host full when it saved; it was ended because it filled one.
  void FindsDiskFull(Epoch epoch) { found_disk_full_.insert(epoch); }
  bool FoundDiskFull(Epoch epoch) const { return found_disk_full_.contains(epoch); }
  void FillsDisk(Epoch epoch) { filled_disk_.insert(epoch); }
  bool FilledDisk(Epoch epoch) const { return filled_disk_.contains(epoch); }

  void Reported(Epoch epoch, Step step) { reports_.emplace(epoch, step); }
  bool HasReported(Epoch epoch, Step step) const { return reports_.contains({epoch, step}); }

  // No attempt saves a checkpoint where another one has left its own.
  void FileSaved(const std::string& path, const std::string& executor);
  // As gang/set_aside.h: what the folder holds of another log's sweep of this number goes, and what
  // the log does not know of this trial.
  void FoldersClaimed(const std::string& executor, const gang::GangSpec& spec);
  // A backup was restored, whose sweep has ended with this checkpoint. Its file is gone, and nobody
  // is asked about it.
  void FileLost(const std::string& path) { lost_files_.insert(path); }
  bool IsLost(const std::string& path) const { return lost_files_.contains(path); }
  // So may be, from now on, any checkpoint to resume from.
  void LogRestored() { restored_ = true; }
  bool WasLogRestored() const { return restored_; }
  void FileDeleted(const std::string& path) { files_.erase(path); }
  // Whatever lies below this path in the folder that the executor sees.
  void SweepDeleted(const std::string& path, const std::string& executor);
  bool HasFile(const std::string& path) const { return files_.contains(path); }

 private:
  struct Gang {
    AttemptId attempt;
    std::string executor;
    std::vector<int> ranks;
    std::map<int, int> gpus;  // and what it has of each, in percent
    bool doomed = false;
  };

  bool Moves(const Gang& gang) const { return !gang.doomed && !still_.contains(gang.executor); }

  Findings& findings_;
  std::map<std::pair<Epoch, std::string>, Gang> gangs_;  // each part
  std::set<Epoch> left_;
  std::set<std::string> still_;
  std::set<std::string> seen_;
  std::optional<Time> listens_since_;
  std::map<std::string, Time> disturbed_;
  std::map<std::string, Time> connected_;
  std::set<std::pair<Epoch, Step>> reports_;
  std::set<Epoch> found_disk_full_;
  std::set<Epoch> filled_disk_;
  std::map<std::string, std::string> folders_;                  // of hosts
  std::map<std::string, std::string> files_;                    // and the folder they are in
  std::map<std::pair<std::string, uint64_t>, uint64_t> marks_;  // identities, by folder and sweep
  std::set<std::pair<std::string, uint64_t>> claims_;           // folders and epochs of attempts
  std::set<std::string> lost_files_;
  bool restored_ = false;
};

}  // namespace attune::sim
