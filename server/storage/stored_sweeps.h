#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/base/ids.h"
#include "core/log/event.h"

namespace attune::server {

// A sweep that may have files in an object store. The state forgets a deleted sweep, but its files
// must still be deleted.
struct StoredSweep {
  SweepId sweep;
  LogIdentity identity;        // of the log when the sweep was created
  std::string address;         // of the store
  std::set<std::string> code;  // digests of its code
  // The end of the sweep (SweepRow::ended) for which all results are stored, and for which all
  // superseded copies are deleted. Empty: there is none.
  std::string results_of;
  std::string cleaned_of;

  bool operator==(const StoredSweep&) const = default;
};

// The files with all StoredSweeps: one for each, named by StoredSweepName(). Any thread.
class StoredSweeps {
 public:
  // Reads the folder, which need not exist. Logs and ignores files that are damaged.
  explicit StoredSweeps(std::filesystem::path folder);

  std::vector<StoredSweep> All() const;
  std::optional<StoredSweep> Find(SweepId sweep, LogIdentity identity) const;

  // Changes a sweep, which is added if it is unknown. Writes its file if it has changed. Errors:
  // see SystemError().
  Status Update(SweepId sweep, LogIdentity identity,
                const std::function<void(StoredSweep&)>& change);
  Status Remove(SweepId sweep, LogIdentity identity);

 private:
  using Key = std::pair<SweepId, LogIdentity>;

  std::filesystem::path FileOf(const Key& key) const;

  const std::filesystem::path folder_;
  mutable std::mutex mutex_;
  std::map<Key, StoredSweep> sweeps_;  // under mutex_
};

}  // namespace attune::server
