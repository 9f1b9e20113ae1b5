#include "executor/transfer/data_copies.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

#include "checkpoints/manifest.h"
#include "checkpoints/removal.h"
#include "download/download.h"
#include "download/url.h"
#include "executor/gang/folders.h"
#include "executor/gang/preparation.h"
#include "logging/log.h"
#include "system/file_copies.h"
#include "system/files.h"
#include "system/sha256.h"
#include "system/system_error.h"
#include "system/unique_fd.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::hours kKept{24};
constexpr mode_t kReadOnly = 0444;
constexpr mode_t kReadOnlyFolder = 0555;
constexpr mode_t kWritableFolder = 0755;
constexpr double kWholeMegabytesMin = 10;  // smaller sizes have a decimal

Error DataError(const std::string& what, const fs::path& path, int error) {
  return SystemError("cannot " + what + " " + path.string(), error);
}

fs::path StampPath(const fs::path& copy) { return copy / ".stamp"; }

// The file of a copy and its stamp.
struct StampedFile {
  std::string name;
  std::string stamp;
};

Result<StampedFile> ReadStamp(const fs::path& copy) {
  const Result<std::string> line = ReadWord(StampPath(copy));
  if (!line.ok()) return line.error();
  const size_t space = line->find(' ');
  if (space != line->npos && line->find('/') == line->npos)
    return StampedFile{.name = line->substr(space + 1), .stamp = line->substr(0, space)};
  return Error{ErrorCode::kCorrupt, StampPath(copy).string() + " is missing or damaged"};
}

// Makes the file and the folder read-only, and stamps the file.
Status ProtectData(const fs::path& copy, const std::string& name) {
  const fs::path file = copy / name;
  if (chmod(file.c_str(), kReadOnly) != 0) return DataError("protect", file, errno);
  const Result<std::string> stamp = FileStamp(file);
  if (!stamp.ok()) return stamp.error();
  if (Status written = WriteWhole(StampPath(copy), *stamp + " " + name + "\n", kPrivate);
      !written.ok())
    return written;
  if (chmod(copy.c_str(), kReadOnlyFolder) != 0) return DataError("protect", copy, errno);
  return {};
}

Status MakeFolderWritable(const fs::path& copy) {
  if (chmod(copy.c_str(), kWritableFolder) == 0) return {};
  return DataError("write to", copy, errno);
}

Status VerifyData(const fs::path& copy, const std::string& digest, const std::stop_token& stop) {
  const Result<StampedFile> known = ReadStamp(copy);
  if (!known.ok()) return known.error();
  const fs::path file = copy / known->name;
  std::error_code absent;
  if (!fs::is_regular_file(fs::symlink_status(file, absent)))
    return Error{ErrorCode::kCorrupt, file.string() + " is missing"};
  const Result<std::string> stamp = FileStamp(file);
  if (!stamp.ok()) return stamp.error();
  if (*stamp == known->stamp) return {};
  const Result<std::string> hash = Sha256::HexOfFile(file, [&] { return !stop.stop_requested(); });
  if (!hash.ok()) return hash.error();
  if (std::string(checkpoints::kDigestPrefix) + *hash != digest)
    return Error{ErrorCode::kCorrupt, file.string() + " does not have its SHA-256"};
  if (Status writable = MakeFolderWritable(copy); !writable.ok()) return writable;
  return ProtectData(copy, known->name);
}

std::error_code RemoveData(const fs::path& copy) {
  for (const fs::path& folder : {copy, checkpoints::PathOfRemoved(copy)})
    chmod(folder.c_str(), kWritableFolder);
  return checkpoints::RemoveFolder(copy);
}

// ---- download -----------------------------------------------------------------------------------

// The folder of an incomplete copy.
fs::path PartOf(const fs::path& copy) {
  return copy.parent_path() / ("." + copy.filename().string() + ".part");
}

// Removes all other files, which belong to a download from another URL.
Status KeepOnly(const fs::path& folder, const std::string& name) {
  std::error_code failed;
  for (auto entry = fs::directory_iterator(folder, failed);
       !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    if (entry->path().filename() != name) fs::remove_all(entry->path(), failed);
    if (failed) break;
  }
  return failed ? Status(DataError("write to", folder, failed.value())) : Status();
}

Status PublishData(const fs::path& part, const std::string& name, const fs::path& copy) {
  if (Status kept = KeepOnly(part, name); !kept.ok()) return kept;
  if (Status made = ProtectData(part, name); !made.ok()) return made;
  if (Status swapped = SwapFolderIn(part, copy); !swapped.ok()) return swapped;
  RemoveData(part);
  return SyncFolder(copy.parent_path());
}

Result<download::Downloaded> DownloadPart(const gang::DataFile& file, const fs::path& part,
                                          const FetchContext& context) {
  std::error_code failed;
  fs::create_directories(part, failed);
  if (failed) return DataError("make", part, failed.value());
  if (Status writable = MakeFolderWritable(part); !writable.ok()) return writable.error();
  return download::DownloadFile(
      {.url = file.url, .sha256 = file.sha256, .path = part / download::FileName(file.url)},
      {.disk_free_bytes_min = context.disk_free_bytes_min},
      {.tick = [&] { return !context.stop.stop_requested(); },
       .progress =
           [&](uint64_t done, uint64_t all) {
             context.progress({.bytes_done = done, .bytes_all = all});
           }});
}

Transfer DownloadData(const gang::DataFile& file, const fs::path& copy,
                      const FetchContext& context) {
  const fs::path part = PartOf(copy);
  Result<download::Downloaded> done = DownloadPart(file, part, context);
  // Something has changed the complete file before the folder was renamed.
  if (!done.ok() && done.error().code == ErrorCode::kConflict) {
    RemoveData(part);
    done = DownloadPart(file, part, context);
  }
  if (!done.ok()) {
    const ErrorCode code = done.error().code;
    return {.status = done.error(),
            .is_final = code == ErrorCode::kCorrupt || code == ErrorCode::kInvalid};
  }
  return {.status = PublishData(part, download::FileName(file.url), copy),
          .bytes = done->bytes,
          .fetched = done->received};
}

// Links the name of the file's URL to the file, if the copy came from another URL.
Status LinkName(const fs::path& copy, const gang::DataFile& file) {
  const fs::path path = PathOfData(copy, file);
  std::error_code absent;
  if (fs::exists(path, absent)) return {};
  const Result<StampedFile> known = ReadStamp(copy);
  if (!known.ok()) return known.error();
  if (Status writable = MakeFolderWritable(copy); !writable.ok()) return writable;
  unlink(path.c_str());
  if (symlink(known->name.c_str(), path.c_str()) != 0) return DataError("make", path, errno);
  if (chmod(copy.c_str(), kReadOnlyFolder) != 0) return DataError("protect", copy, errno);
  return {};
}

// ---- the log of a rank --------------------------------------------------------------------------

std::string SizeText(uint64_t bytes, int decimals) {
  return fmt::format("{:.{}f}", Megabytes(bytes), decimals);
}

std::string ProgressLine(const gang::DataFile& file, const std::optional<Progress>& progress) {
  if (!progress) return "waiting for " + file.name + ": this host downloads other data first";
  const std::string line =
      "downloading " + file.name + " from " + download::WithoutSecrets(file.url);
  const auto [done, all] = *progress;
  if (done == 0) return line;
  const int decimals = Megabytes(std::max(done, all)) < kWholeMegabytesMin ? 1 : 0;
  const std::string size = ": " + SizeText(done, decimals);
  return line + size + (all == 0 ? "" : " of " + SizeText(all, decimals)) + " MB";
}

void AppendToLog(const gang::GangSpec& spec, const std::string& line) {
  if (spec.ranks.empty() || !gang::MakeFolders(spec).ok()) return;
  const Result<UniqueFd> log =
      gang::OpenLog(gang::RankLog(spec.attempt_dir, spec.ranks.front().rank));
  // The gang starts without the line, too.
  if (log.ok()) WriteAt(log->get(), "[attune] " + line + "\n", 0);
}

}  // namespace

const CopyKind kData{.verify = VerifyData, .remove = RemoveData, .kept = kKept};

WantedCopy WantedData(const gang::GangSpec& spec, const gang::DataFile& file) {
  return {
      .name = gang::ToString(file),
      .digest = std::string(checkpoints::kDigestPrefix) + file.sha256,
      .download = [file](const fs::path& copy,
                         const FetchContext& context) { return DownloadData(file, copy, context); },
      .prepare = [file](const fs::path& copy) { return LinkName(copy, file); },
      .progress =
          [spec, file](const std::optional<Progress>& progress) {
            AppendToLog(spec, ProgressLine(file, progress));
          }};
}

fs::path PathOfData(const fs::path& copy, const gang::DataFile& file) {
  return copy / download::FileName(file.url);
}

}  // namespace attune::agent
