#pragma once

#include <filesystem>

#include "trainable/channel/messages.h"
#include "trainable/distributed/process_groups.h"

namespace attune::inline sdk::trainable {

// This host's copy of the checkpoint that a gang over several hosts resumes from.
//
// Rank 0's host has the checkpoint. On each host without a checkpoint of this digest at its path,
// the first rank fetches the files from rank 0 over the control group, into a hidden folder in its
// checkpoint folder. Readers check the files against the manifest. If all hosts share the folder,
// nothing is fetched.
class FetchedCheckpoint {
 public:
  // Collective. REQUIRES: start.resume. Throws attune::Error on rank 0 if it has no such
  // checkpoint, and on a rank that cannot write the files.
  FetchedCheckpoint(const Start& start, ProcessGroups& groups);

  // Removes what this rank has fetched.
  ~FetchedCheckpoint();
  FetchedCheckpoint(const FetchedCheckpoint&) = delete;
  FetchedCheckpoint& operator=(const FetchedCheckpoint&) = delete;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  bool owns_copy_ = false;
};

}  // namespace attune::inline sdk::trainable
