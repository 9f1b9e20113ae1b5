#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

#include "base/result.h"
#include "system/unique_fd.h"

namespace attune::slurm {

// What is kept of a fleet of pilots, in the folder `DATA-DIR/slurm`: which one it is, how far its
// numbers are, and which pilots may be on their way to Slurm.
//
//   fleet.json   the above, replaced as a whole and synced
//   lock         held by the one manager
//   down         the manager is to end
class FleetFolder {
 public:
  struct Fleet {
    std::string id;                // eight random hexadecimal digits
    int64_t next = 1;              // the next pilot's number
    std::set<int64_t> intents;     // submitted, or about to be, and not seen in the queue yet
    std::filesystem::path shared;  // that all nodes see: logs, script, the executors' data
  };

  // Reads what is there. kNotFound: no fleet was ever begun here.
  static Result<FleetFolder> Open(const std::filesystem::path& data_dir);
  // The same, or a new fleet.
  static Result<FleetFolder> OpenOrBegin(const std::filesystem::path& data_dir);

  // For as long as this lives. kConflict: another process has it.
  Status Lock();

  const Fleet& fleet() const { return fleet_; }
  // Durable once it returns.
  Status Save(Fleet fleet);

  // A manager sees that it is to end, and ends; asked before Lock(), it frees the way.
  Status AskToEnd();
  bool asked_to_end() const;
  void ForgetAsked();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit FleetFolder(std::filesystem::path path) : path_(std::move(path)) {}
  Status Read();

  std::filesystem::path path_;
  Fleet fleet_;
  UniqueFd lock_;
};

}  // namespace attune::slurm
