#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/log/event.h"

namespace attune::server {

// A folder of the server's, which may lie on a file server, with copies of checkpoints that outlive
// their executors: `s1/17/2-900`, as people name them. A copy that is there is whole. Any thread.
class CheckpointStorage {
 public:
  // Makes the folder when it is absent, and marks it as that of `owner`, a word by which the server
  // knows its own. kConflict: it is another server's. kDenied, kStorageFull: it cannot be written.
  static Result<CheckpointStorage> Open(const std::filesystem::path& path,
                                        const std::string& owner);

  std::filesystem::path FolderOf(const CheckpointId& id) const;
  // Whether there is a copy of the checkpoint with this digest. One of that name with another
  // digest is of a log whose end was lost.
  bool Has(const CheckpointId& id, const std::string& digest) const;
  std::vector<CheckpointId> Of(SweepId sweep) const;
  void Remove(const CheckpointId& id) const;
  bool Remove(SweepId sweep) const;  // all of it; false: not all could be deleted
  // Copies that were begun, but those of these, and deletions that were.
  void RemoveUnfinished(SweepId sweep, const std::set<CheckpointId>& but) const;

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit CheckpointStorage(std::filesystem::path path) : path_(std::move(path)) {}

  template <typename Visit>
  void Each(SweepId sweep, Visit visit) const;

  std::filesystem::path path_;
};

}  // namespace attune::server
