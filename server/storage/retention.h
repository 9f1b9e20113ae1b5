#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "object_storage/store.h"
#include "server/storage/wanted.h"

namespace attune::server {

// A kept checkpoint that is stored according to the log.
struct RecordedCopy {
  CheckpointId id;
  std::string digest;

  auto operator<=>(const RecordedCopy&) const = default;
};

struct RetentionInput {
  WantedCopies wanted;
  // The wanted copies that an executor could upload now or later: one that is not lost sees their
  // data folder, and has not said that it cannot upload them.
  std::set<CheckpointId> obtainable;
  // The folders in the store: the last two names of StoredPath(), such as 17/2-900-4f0c2d9e8a7b6c5d
  std::set<std::string> folders;
  std::set<std::string> complete;          // those with a manifest
  std::set<RecordedCopy> recorded;         // after the folders were listed
  std::set<RecordedCopy> recorded_before;  // before they were listed
};

struct RetentionPlan {
  // The copies that the log must forget before folders are deleted: those to delete, and those that
  // are not in the store.
  std::vector<RecordedCopy> to_forget;
  std::vector<std::string> to_delete;  // folders
};

// Decides which copies of a sweep are deleted: all that are not wanted. A superseded copy stays
// until the wanted copies of its trial and those of the best reports are stored. If these cannot be
// obtained, only superseded copies of checkpoints that are still kept stay.
RetentionPlan PlanRetention(const RetentionInput& input);

// The name of a copy's folder, as in RetentionInput::folders.
std::string CopyFolder(const CheckpointId& id, const std::string& digest);

// Adds the folders of a listing of StoredCheckpoints() to the input.
void AddListing(const object_storage::StoredFiles& files, RetentionInput& input);

}  // namespace attune::server
