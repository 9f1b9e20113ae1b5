#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "base/result.h"
#include "pilots/engine.h"
#include "system/unique_fd.h"

namespace attune::pilots {

// The saved state of a fleet of pilots: its id, the next pilot number, and the pilots that may be
// on their way to the engine. The folder is DATA-DIR/COMMAND, such as DATA-DIR/slurm.
//
//   fleet.json   the state; replaced as a whole and synced
//   lock         locked by the only manager
//   down         exists if the manager must end
class FleetFolder {
 public:
  struct Fleet {
    std::string id;             // eight random hexadecimal digits
    int64_t next = 1;           // number of the next pilot
    std::set<int64_t> intents;  // pilots that are being submitted, not in the queue yet
    // What the engine needs to find its pilots and logs again, by name. No name is a member above.
    std::map<std::string, std::string> settings;
  };

  // Opens the folder of a fleet. kNotFound: no fleet was ever created here.
  static Result<FleetFolder> Open(const std::filesystem::path& data_dir, const EngineFacts& engine);
  // Opens the folder; creates a fleet if there is none.
  static Result<FleetFolder> OpenOrCreate(const std::filesystem::path& data_dir,
                                          const EngineFacts& engine);

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
  FleetFolder(const std::filesystem::path& data_dir, EngineFacts engine);
  Status Read();

  EngineFacts engine_;
  std::filesystem::path path_;
  Fleet fleet_;
  UniqueFd lock_;
};

}  // namespace attune::pilots
