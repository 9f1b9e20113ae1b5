#pragma once

#include <filesystem>

#include "trainable/channel/messages.h"
#include "trainable/distributed/process_groups.h"

namespace attune::inline sdk::trainable {

// The checkpoint that a gang over several hosts goes on from, on this host.
//
// It lies where rank 0 is. The first rank of each host that has none of that digest at its path
// gets the files from rank 0 over the control group, into a hidden folder of its own checkpoint
// folder; readers check them against the manifest as they do any other. Nothing is fetched where
// all hosts share the folder.
class FetchedCheckpoint {
 public:
  // Every rank of the gang calls this at the same place. REQUIRES: start.resume. Throws
  // attune::Error on rank 0 when it has no such checkpoint, and where the files cannot be written.
  FetchedCheckpoint(const Start& start, ProcessGroups& groups);

  // Removes what this rank has fetched.
  ~FetchedCheckpoint();
  FetchedCheckpoint(const FetchedCheckpoint&) = delete;
  FetchedCheckpoint& operator=(const FetchedCheckpoint&) = delete;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  bool is_own_ = false;
};

}  // namespace attune::inline sdk::trainable
