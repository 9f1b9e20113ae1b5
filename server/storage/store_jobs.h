#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>

#include "base/result.h"
#include "core/log/command.h"
#include "server/folder/code_storage.h"
#include "server/storage/retention.h"
#include "server/storage/stored_sweeps.h"
#include "server/storage/stores.h"
#include "server/storage/wanted.h"
#include "server/store/reader.h"

namespace attune::server {

// A sweep with files in an object store.
struct SweepInStore {
  SweepId sweep;
  LogIdentity identity;  // of the log when the sweep was created
  std::string address;   // of the store

  auto operator<=>(const SweepInStore&) const = default;
};

// The operations of the server on object stores. Each waits for the store. One thread at a time.
class StoreJobs {
 public:
  struct Options {
    StateQuery query;
    std::function<Status(Command)> execute;  // waits until its events are durable
    // Whether an executor cannot upload the copy with this StoredPath().
    std::function<bool(const std::string& path)> is_skipped = [](const auto&) { return false; };
    std::string server;  // the id of the server's data folder
    std::string database;
    std::filesystem::path scratch;  // for files that are uploaded; earlier contents are deleted
  };

  // All arguments must outlive the object.
  StoreJobs(Options options, Reader& reader, CodeStorage& code, Stores& stores,
            StoredSweeps& stored);

  // Stores the code of a sweep that is not stored yet: that of its specification, and these
  // snapshots of its trials.
  Status StoreCode(const SweepInStore& in, const std::set<std::string>& patched,
                   const std::stop_token& stop);

  // Stores the newest results and the code, and deletes earlier results. Does nothing if the sweep
  // has ended and all is stored.
  Status StoreResults(const SweepInStore& in, const std::set<std::string>& patched,
                      const std::stop_token& stop);

  // Deletes copies of checkpoints that are not wanted any more. Lists the store if something was
  // dropped, if a copy is superseded, and once after the end of the sweep.
  Status Clean(const SweepInStore& in, bool dropped, const std::stop_token& stop);

  // Deletes all files of a deleted sweep.
  Status Delete(const SweepInStore& in, const std::stop_token& stop);

  // Deletes parts of uploads that were not continued for a day.
  Status RemoveAbandonedParts(const std::string& address, const std::stop_token& stop);

 private:
  Status StoreSnapshot(const SweepInStore& in, const std::string& digest,
                       const std::stop_token& stop);
  // Reads all of the input but the listing. kNotFound: there is no such sweep.
  Result<RetentionInput> ReadRetention(const SweepInStore& in);
  Result<std::set<RecordedCopy>> ReadRecorded(const SweepInStore& in);
  bool UsesCode(const StoredSweep& except, const std::string& digest) const;

  const Options options_;
  Reader& reader_;
  CodeStorage& code_;
  Stores& stores_;
  StoredSweeps& stored_;
  std::set<std::pair<std::string, std::string>> stored_code_;  // addresses and digests
};

}  // namespace attune::server
