#pragma once

#include <filesystem>
#include <stop_token>
#include <string>
#include <utility>

#include "base/result.h"
#include "server/folder/code_storage.h"
#include "server/store/reader.h"

namespace attune::server {

// The archive of a snapshot of code.
inline constexpr char kCodeFile[] = "code.tar.gz";
// The results of a sweep.
inline constexpr char kSweepFile[] = "sweep.json";
inline constexpr char kTrialsFile[] = "trials.jsonl";

// Where a server stores a snapshot of code, below the address of a store. `server` is the id of its
// data folder, so that no server deletes files that another one needs. REQUIRES: it is a digest.
std::string CodePath(const std::string& server, const std::string& digest);
// Where the results of all versions are stored. `name` is that of StoredSweepName().
std::string ResultsPath(const std::string& name);

// A folder that is deleted with the object.
class TemporaryFolder {
 public:
  // Makes an empty folder inside `parent`, which it makes, too.
  static Result<TemporaryFolder> Make(const std::filesystem::path& parent);
  TemporaryFolder(TemporaryFolder&&) noexcept = default;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;  // empty: moved away
};

// Deletes a folder, also if folders in it are read-only.
void RemoveTree(const std::filesystem::path& folder);

// Writes the archive of a snapshot to the folder. Runs the program tar. kNotFound: the program is
// missing, or the server has no such snapshot.
Status WriteCodeArchive(CodeStorage& code, const std::string& digest,
                        const std::filesystem::path& folder, const std::stop_token& stop);

// Writes the results of a sweep to the folder, without `env` of its program. Returns the name of
// this version, which derives from the newest event and the contents.
Result<std::string> WriteResults(SweepId sweep, Reader& reader, const std::string& database,
                                 const std::filesystem::path& folder);

}  // namespace attune::server
