#include "executor/gang/folders.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "system/files.h"
#include "system/system_error.h"

namespace attune::gang {

namespace fs = std::filesystem;

Folders::Folders(const fs::path& data) : data_(fs::absolute(data).lexically_normal()) {}

fs::path Folders::Sweep(uint64_t sweep) const { return Sweeps() / ("s" + std::to_string(sweep)); }

fs::path Folders::Trial(const AttemptId& attempt) const {
  return Sweep(attempt.sweep) / "trials" / std::to_string(attempt.trial);
}

fs::path Folders::Attempt(const AttemptId& attempt) const {
  return Trial(attempt) / "attempts" / std::to_string(attempt.attempt);
}

fs::path Folders::Checkpoints(const AttemptId& attempt) const {
  return Trial(attempt) / "checkpoints";
}

fs::path Folders::Files(const AttemptId& attempt) const { return Trial(attempt) / "files"; }

fs::path Folders::Work(const AttemptId& attempt) const { return Trial(attempt) / "work"; }

Result<std::string> ReadSweepMark(const fs::path& sweep_dir) {
  return ReadWhole(sweep_dir / "server");
}

Status WriteSweepMark(const fs::path& sweep_dir, const std::string& word) {
  const Result<std::string> before = ReadSweepMark(sweep_dir);
  if (before.ok() && before.value() == word) return {};
  return WriteWhole(sweep_dir / "server", word, kReadableByAll);
}

std::string CheckpointFolder(int64_t step, uint32_t attempt) {
  return "step-" + std::to_string(step) + "-attempt-" + std::to_string(attempt);
}

std::optional<CheckpointName> ParseCheckpointFolder(const fs::path& folder) {
  const fs::path trial = folder.parent_path().parent_path();
  CheckpointName name;
  const std::string text = trial.parent_path().parent_path().filename().string() + "/" +
                           trial.filename().string() + "/" + folder.filename().string();
  const int read =
      std::sscanf(text.c_str(), "s%" SCNu64 "/%" SCNu32 "/step-%" SCNd64 "-attempt-%" SCNu32,
                  &name.sweep, &name.trial, &name.step, &name.attempt);
  return read == 4 ? std::optional(name) : std::nullopt;
}

std::optional<fs::path> FetchedFolder(const GangSpec& spec) {
  if (!spec.resume || !spec.SpansHosts() || spec.HasRankZero()) return std::nullopt;
  return spec.checkpoint_dir / (".attempt-" + std::to_string(spec.attempt.attempt) + "-resumed-" +
                                std::to_string(spec.ranks.front().rank));
}

fs::path RankLog(const fs::path& attempt_dir, int rank) {
  return attempt_dir / ("rank-" + std::to_string(rank) + ".log");
}

std::vector<fs::path> UnfinishedCheckpoints(const GangSpec& spec) {
  std::vector<fs::path> unfinished;
  if (!spec.HasRankZero()) return unfinished;
  const std::string prefix = ".attempt-" + std::to_string(spec.attempt.attempt) + "-";
  std::error_code absent;
  for (auto entry = fs::directory_iterator(spec.checkpoint_dir, absent);
       !absent && entry != fs::directory_iterator(); entry.increment(absent)) {
    const std::string name = entry->path().filename();
    // Executors may share the folder: skip copies that others have fetched into it.
    if (name.starts_with(prefix) && !name.starts_with(prefix + "resumed-"))
      unfinished.push_back(entry->path());
  }
  return unfinished;
}

Result<UniqueFd> OpenLog(const fs::path& path) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  UniqueFd log(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log) return SystemError("cannot open " + path.string(), errno);
  return log;
}

namespace {

// Finds the first hole of a file that other processes append to.
LogGap FindGap(int log, uint64_t size) {
  const off_t begin = lseek(log, 0, SEEK_HOLE);
  if (begin < 0 || static_cast<uint64_t>(begin) >= size) return {};
  const off_t end = lseek(log, begin, SEEK_DATA);
  if (end < 0) return {};
  return {static_cast<uint64_t>(begin), static_cast<uint64_t>(end)};
}

// The line that is shown in place of the last bytes of the gap.
std::string GapLine(const LogGap& gap) {
  if (gap == LogGap{}) return "";
  return "\n[attune: " + std::to_string(gap.end - gap.begin) +
         " bytes are missing here, because the log reached its limit (--max-rank-log)]\n";
}

// Reads at most `limit` bytes of the file from position `from`.
Result<std::string> ReadBytes(int file, const fs::path& path, uint64_t from, uint64_t limit) {
  std::string bytes(limit, '\0');
  const ssize_t count = pread(file, bytes.data(), limit, static_cast<off_t>(from));
  if (count < 0) return SystemError("cannot read " + path.string(), errno);
  bytes.resize(static_cast<size_t>(count));
  return bytes;
}

}  // namespace

Result<LogPiece> ReadLog(const fs::path& path, int64_t offset, uint32_t limit) {
  const UniqueFd log(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!log || fstat(log.get(), &status) != 0) {
    return SystemError("cannot read " + path.string(), errno);
  }
  const int64_t size = status.st_size;
  auto from =
      static_cast<uint64_t>(offset >= 0 ? std::min(offset, size) : std::max(offset, -size) + size);
  LogPiece piece{.file_bytes = static_cast<uint64_t>(size)};
  piece.gap = FindGap(log.get(), piece.file_bytes);
  const std::string line = GapLine(piece.gap);
  const uint64_t line_begin = piece.gap.end - line.size();
  if (from >= piece.gap.begin && from < line_begin) from = line_begin;
  piece.offset = from;

  uint64_t left = std::min(limit, kLogReadBytesMax);
  if (from < piece.gap.begin) left = std::min(left, piece.gap.begin - from);
  if (from >= line_begin && from < piece.gap.end) {
    piece.data = line.substr(from - line_begin, left);
    from += piece.data.size();
    left -= piece.data.size();
  }
  Result<std::string> read =
      ReadBytes(log.get(), path, from, std::min(left, piece.file_bytes - from));
  if (!read.ok()) return read.error();
  piece.data += read.value();
  return piece;
}

std::string LogTail(const fs::path& path) {
  Result<LogPiece> piece = ReadLog(path, -static_cast<int64_t>(kLogTailBytesMax), kLogTailBytesMax);
  if (!piece.ok()) return {};
  std::string tail = std::move(piece.value().data);
  // Begin with a complete line if the piece has one.
  if (piece.value().offset > 0) {
    const size_t newline = tail.find('\n');
    if (newline != std::string::npos && newline + 1 < tail.size()) tail.erase(0, newline + 1);
  }
  return tail;
}

}  // namespace attune::gang
