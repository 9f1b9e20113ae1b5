#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/message_limits.h"
#include "base/result.h"
#include "executor/gang/spec.h"
#include "executor/gang/words.h"
#include "system/unique_fd.h"

namespace attune::gang {

inline constexpr uint32_t kLogReadBytesMax = 1 << 20;

// Where an executor keeps what its gangs write:
//
//   <data>/sweeps/s<sweep>/server
//   <data>/sweeps/s<sweep>/trials/<trial>/attempts/<attempt>/rank-<r>.log
//   <data>/sweeps/s<sweep>/trials/<trial>/checkpoints/
//   <data>/launchers/<program>.log
//   <data>/set-aside/  (set_aside.h)
class Folders {
 public:
  // Workers run in other folders, so `data` is made absolute.
  explicit Folders(const std::filesystem::path& data);

  std::filesystem::path Sweep(uint64_t sweep) const;
  std::filesystem::path Sweeps() const { return data_ / "sweeps"; }
  std::filesystem::path Attempt(const AttemptId& attempt) const;
  std::filesystem::path Checkpoints(const AttemptId& attempt) const;
  std::filesystem::path Files(const AttemptId& attempt) const;  // of the program's own
  std::filesystem::path SetAside() const { return data_ / "set-aside"; }
  std::filesystem::path Launchers() const { return data_ / "launchers"; }

 private:
  std::filesystem::path Trial(const AttemptId& attempt) const;

  std::filesystem::path data_;
};

// The folder of a checkpoint among those of its trial.
std::string CheckpointFolder(int64_t step, uint32_t attempt);

// The checkpoint whose folder this is, as Folders has it; nullopt: it is none's.
std::optional<CheckpointName> CheckpointAt(const std::filesystem::path& folder);

// Where ranks of this host put the copy of a checkpoint that they fetch from rank 0's host:
// `.attempt-<n>-resumed-<first rank here>`; nullopt: they fetch none.
std::optional<std::filesystem::path> FetchedFolder(const GangSpec& spec);

// What rank 0, which has ended, has begun to save and has not finished; empty where rank 0 is on
// another host.
std::vector<std::filesystem::path> UnfinishedCheckpoints(const GangSpec& spec);

// The mark of a sweep's folder: the identity of the log when the sweep was created, as text. Empty:
// it has none.
Result<std::string> ReadOwner(const std::filesystem::path& sweep_dir);
Status WriteOwner(const std::filesystem::path& sweep_dir, const std::string& word);

std::filesystem::path RankLog(const std::filesystem::path& attempt_dir, int rank);

// Opens a log to append to, making its folder. Every rank appends with O_APPEND, so that lines of
// processes that share a log never overwrite each other.
Result<UniqueFd> OpenLog(const std::filesystem::path& path);

// Which part of a log is missing because it reached its limit (LogLimit). Empty: none is.
struct LogGap {
  uint64_t begin = 0;
  uint64_t end = 0;

  bool operator==(const LogGap&) const = default;
};

struct LogPiece {
  std::string data;
  uint64_t offset = 0;      // of data's first byte in the file
  uint64_t file_bytes = 0;  // size of the file now
  LogGap gap;
};

// Reads at most `limit` bytes (and never more than kLogReadBytesMax) from `offset`, which counts
// from the end if negative. Offsets outside the file are moved to its nearest end.
//
// A line at the end of a gap says how much is missing. An offset in the gap is moved to that line.
Result<LogPiece> ReadLog(const std::filesystem::path& path, int64_t offset, uint32_t limit);

// The last lines of a log, at most kLogTailBytesMax; empty if there are none.
std::string LogTail(const std::filesystem::path& path);

}  // namespace attune::gang
