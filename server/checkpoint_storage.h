#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/log/event.h"

namespace attune::server {

// A folder, perhaps on a file server, with copies of checkpoints that outlive their executors. The
// copy of checkpoint s1/17/2-900 is in the folder of that name. A copy that exists is complete. Any
// thread.
class CheckpointStorage {
 public:
  // Opens the folder and creates it if it is absent. Marks it with `owner`, the id of the server.
  // kConflict: it belongs to another server. kDenied, kStorageFull: it cannot be written.
  static Result<CheckpointStorage> Open(const std::filesystem::path& path,
                                        const std::string& owner);

  std::filesystem::path FolderOf(const CheckpointId& id) const;
  // Whether a copy of the checkpoint with this digest exists. A copy with another digest belongs to
  // events that a restored backup has lost.
  bool Has(const CheckpointId& id, const std::string& digest) const;
  std::vector<CheckpointId> ListCopies(SweepId sweep) const;
  void Remove(const CheckpointId& id) const;
  bool Remove(SweepId sweep) const;  // all copies; false: some could not be deleted
  // Removes unfinished copies and deletions, except unfinished copies of `except`.
  void RemoveUnfinished(SweepId sweep, const std::set<CheckpointId>& except) const;

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit CheckpointStorage(std::filesystem::path path) : path_(std::move(path)) {}

  template <typename Visit>
  void ForEachEntry(SweepId sweep, Visit visit) const;

  std::filesystem::path path_;
};

}  // namespace attune::server
