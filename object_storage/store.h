#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "object_storage/address.h"
#include "object_storage/process.h"
#include "object_storage/rclone.h"
#include "object_storage/settings.h"

namespace attune::object_storage {

// Each operation runs one rclone. Its memory has about 70 MB, and for an upload up to `transfers` *
// (`buffer_bytes` + `parts.concurrency` * `parts.part_bytes`) more.
struct StoreOptions {
  int transfers = 2;  // files that are sent or deleted at the same time
  uint64_t buffer_bytes = 4 << 20;
  PartSettings parts;
  uint64_t bytes_per_second_max = 0;  // of each operation; 0: no limit

  std::chrono::milliseconds connect_timeout = std::chrono::seconds(15);
  // A connection that transfers nothing for this long is closed.
  std::chrono::milliseconds stall_timeout = std::chrono::minutes(1);

  // Number of attempts if the service is unavailable. `backoff` is the delay before the second
  // attempt; it doubles before each further one.
  int tries = 4;
  std::chrono::milliseconds backoff = std::chrono::seconds(1);
};

struct UploadRequest {
  std::filesystem::path folder;  // on this host; no link is followed
  // Names of the files in the folder. They are valid (checkpoints::NameFault).
  std::vector<std::string> files;
  // The file that marks the upload as complete, such as manifest.json; not one of `files`.
  std::string manifest;
  // Where the files are stored, below the address: `checkpoints/s1/17/2-900-4f0c…`. A path always
  // means the same contents, so part of it must derive from them.
  std::string path;
};

struct Uploaded {
  size_t files = 0;  // of this call, with the manifest; an earlier call stored the others
  uint64_t bytes = 0;
};

// Sizes of files in bytes, by name.
using StoredFiles = std::map<std::string, uint64_t>;

// A place in an object store, through rclone. Any thread, also several at the same time.
//
// `stop` ends a call early, within Process::kStopGrace, with kUnavailable. An rclone also ends with
// the thread that called, even if this process is killed.
//
// Messages name the address and contain no credentials. CodeOf() gives the codes of errors. Calls
// retry operations that failed with kUnavailable.
class ObjectStore {
 public:
  // Finds rclone, and does not connect. `environment` has the credentials and the settings of the
  // provider, and HOME and PATH. Errors: those of FindRclone(); kInvalid for a missing setting.
  static Result<ObjectStore> Open(const Address& address, const Environment& environment,
                                  const StoreOptions& options);
  // The same for the text of an address. `variables` replace some of the environment. Errors: those
  // of ParseAddress() in addition.
  static Result<ObjectStore> Open(std::string_view address, const Environment& environment,
                                  const Variables& variables, const StoreOptions& options);

  const Address& address() const { return address_; }

  // Stores the files that are not stored with their size, and then the manifest. After an
  // interruption the next call continues with the first file that is missing.
  //
  // kNotFound: a file of the request is missing. kInvalid: a name has control characters or invalid
  // UTF-8, or `path` is not valid.
  Result<Uploaded> Upload(const UploadRequest& request, const std::stop_token& stop) const;

  // The files below the path, with names relative to it; empty if there are none. Does not contain
  // files whose names are not valid (checkpoints::NameFault). kInvalid also for a path with a
  // longer list, of about 200,000 files.
  Result<StoredFiles> List(const std::string& path, const std::stop_token& stop) const;
  static constexpr size_t kListBytesMax = 32 << 20;

  // Deletes all files below the path, those named `manifest` first. So no other file is missing
  // where there is a manifest. A path without files is no error.
  Status Remove(const std::string& path, const std::string& manifest,
                const std::stop_token& stop) const;

  // Deletes parts of uploads below the path that began more than `age` ago and did not end. Other
  // services than S3 do this themselves.
  Status RemoveAbandonedParts(const std::string& path, std::chrono::hours age,
                              const std::stop_token& stop) const;

 private:
  friend class StoredFolder;

  ObjectStore(Address address, Environment environment, const StoreOptions& options, Rclone rclone);

  std::vector<std::string> Arguments(std::vector<std::string> command, int request_tries) const;
  Result<Process> StartReading(const std::string& path, const std::string& file,
                               uint64_t offset) const;
  Result<std::string> Run(std::vector<std::string> command, const std::stop_token& stop,
                          int request_tries = 1, int inherited_fd = -1) const;
  Status TryUpload(const UploadRequest& request, const StoredFiles& sizes,
                   std::optional<Uploaded>& uploaded, const std::stop_token& stop) const;
  Status Send(const UploadRequest& request, const std::vector<std::string>& files,
              const std::stop_token& stop) const;
  Result<StoredFiles> TryList(const std::string& path, const std::stop_token& stop) const;
  Status TryRemove(const std::string& path, const std::string& manifest,
                   const std::stop_token& stop) const;

  // Calls `attempt` until it succeeds or no other attempt may follow.
  template <class Attempt>
  auto Repeat(std::string_view operation, const std::string& path, const std::stop_token& stop,
              Attempt attempt) const -> decltype(attempt());
  // Sleeps before an attempt with this number, from 2. Returns false if there is no such attempt,
  // or `stop` was requested.
  bool WaitForAttempt(int number, const std::stop_token& stop) const;
  // Explains kNotFound of a listing: a bucket has no folders, so the bucket itself is missing.
  Error ExplainNotFound(const Error& error) const;
  Error ErrorOf(std::string_view operation, const std::string& path, const Error& error) const;

  Address address_;
  Environment environment_;  // of rclone
  StoreOptions options_;
  Rclone rclone_;
};

}  // namespace attune::object_storage
