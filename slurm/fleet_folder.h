#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

#include "base/result.h"
#include "system/unique_fd.h"

namespace attune::slurm {

// The saved state of a fleet of pilots, in the folder `DATA-DIR/slurm`: the fleet's id, the next
// pilot number, and the pilots that may be on their way to Slurm.
//
//   fleet.json   the state; replaced as a whole and synced
//   lock         locked by the only manager
//   down         exists if the manager must end
class FleetFolder {
 public:
  struct Fleet {
    std::string id;                // eight random hexadecimal digits
    int64_t next = 1;              // number of the next pilot
    std::set<int64_t> intents;     // pilots that are being submitted, not in the queue yet
    std::filesystem::path shared;  // folder that all nodes see: logs, script, executors' data
  };

  // Opens the folder of a fleet. kNotFound: no fleet was ever created here.
  static Result<FleetFolder> Open(const std::filesystem::path& data_dir);
  // Opens the folder; creates a fleet if there is none.
  static Result<FleetFolder> OpenOrCreate(const std::filesystem::path& data_dir);

  // Locks the folder until this object is destroyed. kConflict: another process holds the lock.
  Status Lock();

  const Fleet& fleet() const { return fleet_; }
  // The state is on disk when this returns.
  Status Save(Fleet fleet);

  // Asks the running manager to end. It ends soon and unlocks the folder.
  Status RequestStop();
  bool stop_requested() const;
  void ClearStopRequest();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit FleetFolder(std::filesystem::path path) : path_(std::move(path)) {}
  Status Read();

  std::filesystem::path path_;
  Fleet fleet_;
  UniqueFd lock_;
};

}  // namespace attune::slurm
