#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/message_limits.h"
#include "base/result.h"
#include "executor/gang/channel_types.h"
#include "executor/gang/spec.h"
#include "system/unique_fd.h"

namespace attune::gang {

inline constexpr uint32_t kLogReadBytesMax = 1 << 20;

// The layout of an executor's data folder:
//
//   <data>/sweeps/s<sweep>/server
//   <data>/sweeps/s<sweep>/trials/<trial>/attempts/<attempt>/rank-<r>.log
//   <data>/sweeps/s<sweep>/trials/<trial>/checkpoints/
//   <data>/sweeps/s<sweep>/trials/<trial>/work/
//   <data>/launchers/<program>.log
//   <data>/set-aside/  (set_aside.h)
class Folders {
 public:
  // Makes `data` absolute, because workers run in other folders.
  explicit Folders(const std::filesystem::path& data);

  std::filesystem::path Sweep(uint64_t sweep) const;
  std::filesystem::path Sweeps() const { return data_ / "sweeps"; }
  std::filesystem::path Attempt(const AttemptId& attempt) const;
  std::filesystem::path Checkpoints(const AttemptId& attempt) const;
  std::filesystem::path Files(const AttemptId& attempt) const;  // of the trial's program
  std::filesystem::path Work(
      const AttemptId& attempt) const;  // where a program from a snapshot runs
  std::filesystem::path SetAside() const { return data_ / "set-aside"; }
  std::filesystem::path Launchers() const { return data_ / "launchers"; }

 private:
  std::filesystem::path Trial(const AttemptId& attempt) const;

  std::filesystem::path data_;
};

// The name of a checkpoint's folder.
std::string CheckpointFolder(int64_t step, uint32_t attempt);

// Parses the path of a checkpoint's folder; nullopt: the path is not one.
std::optional<CheckpointName> ParseCheckpointFolder(const std::filesystem::path& folder);

// The folder for the copy of a checkpoint that ranks of this host fetch from rank 0's host:
// `.attempt-<n>-resumed-<first rank here>`; nullopt: they fetch none.
std::optional<std::filesystem::path> FetchedFolder(const GangSpec& spec);

// The folders of checkpoints that rank 0 had begun to save when it ended; empty if rank 0 is on
// another host.
std::vector<std::filesystem::path> UnfinishedCheckpoints(const GangSpec& spec);

// The mark of a sweep's folder: the identity of the log in which the sweep was created, as text. An
// error if the folder has no mark.
Result<std::string> ReadSweepMark(const std::filesystem::path& sweep_dir);
Status WriteSweepMark(const std::filesystem::path& sweep_dir, const std::string& word);

std::filesystem::path RankLog(const std::filesystem::path& attempt_dir, int rank);

// Opens a log for appending and makes its folder. All ranks use O_APPEND, so that processes that
// share a log never overwrite each other's lines.
Result<UniqueFd> OpenLog(const std::filesystem::path& path);

// The part of a log that was removed because the log reached its limit (LogLimit). begin == end:
// nothing was removed.
struct LogGap {
  uint64_t begin = 0;
  uint64_t end = 0;

  bool operator==(const LogGap&) const = default;
};

struct LogPiece {
  std::string data;
  uint64_t offset = 0;      // of the first byte of `data` in the file
  uint64_t file_bytes = 0;  // current size of the file
  LogGap gap;
};

// Reads at most `limit` bytes (and never more than kLogReadBytesMax) from `offset`. A negative
// offset counts from the end. An offset outside the file is moved to the nearest end.
//
// A line at the end of a gap says how many bytes are missing. An offset in the gap is moved to that
// line.
Result<LogPiece> ReadLog(const std::filesystem::path& path, int64_t offset, uint32_t limit);

// The last lines of a log, at most kLogTailBytesMax; empty if the log is empty or unreadable.
std::string LogTail(const std::filesystem::path& path);

}  // namespace attune::gang
