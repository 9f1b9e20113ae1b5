#include "executor/gang/set_aside.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>
#include <vector>

#include "executor/gang/folders.h"
#include "logging/log.h"
#include "system/files.h"
#include "system/folder_entries.h"
#include "system/system_error.h"

namespace attune::gang {
namespace {

namespace fs = std::filesystem;

constexpr char kEpochFile[] = "epoch";

Status MakeFolder(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  return failed ? Status(SystemError("cannot make " + folder.string(), failed.value())) : Status();
}

// Locks the data folder's sweeps against other executors for the lifetime of the result.
Result<UniqueFd> LockSweeps(const fs::path& sweeps_dir) {
  if (Status made = MakeFolder(sweeps_dir); !made.ok()) return made.error();
  UniqueFd folder(open(sweeps_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return SystemError("cannot open " + sweeps_dir.string(), errno);
  while (flock(folder.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return SystemError("cannot lock " + sweeps_dir.string(), errno);
  }
  return folder;
}

// Moves a file or folder to a free name in `set_aside_dir`: `name`, or `name.2`, `name.3` and so
// on.
Status MoveAside(const fs::path& from, const fs::path& set_aside_dir, const std::string& name) {
  if (Status made = MakeFolder(set_aside_dir); !made.ok()) return made;
  std::error_code failed;
  fs::path to = set_aside_dir / name;
  for (int i = 2; fs::exists(fs::symlink_status(to, failed)); ++i)
    to = set_aside_dir / (name + "." + std::to_string(i));
  fs::rename(from, to, failed);
  if (failed == std::errc::no_such_file_or_directory) return {};
  if (failed) return SystemError("cannot move " + from.string() + " aside", failed.value());
  logging::Warn("{} does not belong to the server's log; moved it to {}", from.string(),
                to.string());
  return {};
}

// The mark of a sweep's folder; empty: none.
std::string ReadMark(const fs::path& sweep_dir) {
  const Result<std::string> mark = ReadSweepMark(sweep_dir);
  return mark.ok() ? *mark : "";
}

bool HasEpoch(const fs::path& attempt_dir, const std::string& epoch) {
  const Result<std::string> found = ReadWord(attempt_dir / kEpochFile);
  return found.ok() && *found == epoch;
}

// Whether `name` is the number of an attempt from `first` on. These did not exist when the backup
// was made.
bool IsAttemptFrom(uint32_t first, const std::string& name) {
  uint32_t number = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
  return read.ec == std::errc() && read.ptr == name.data() + name.size() && number >= first;
}

Status MoveUnknown(const GangSpec& spec) {
  const fs::path trial_dir = spec.checkpoint_dir.parent_path();
  const std::string name = "s" + std::to_string(spec.attempt.sweep) + "-trial-" +
                           std::to_string(spec.attempt.trial) + "-epoch-" +
                           std::to_string(spec.attempt.epoch);
  const fs::path set_aside = spec.set_aside_dir / name;
  std::error_code ignored;
  if (spec.known->attempts == 0)  // the log knows no files of this trial
    return fs::exists(trial_dir, ignored) ? MoveAside(trial_dir, spec.set_aside_dir, name)
                                          : Status();
  for (const fs::path& entry : EntriesOf(spec.attempt_dir.parent_path())) {
    if (!IsAttemptFrom(spec.known->attempts + 1, entry.filename())) continue;
    if (Status moved = MoveAside(entry, set_aside / "attempts", entry.filename()); !moved.ok())
      return moved;
  }
  for (const fs::path& entry : EntriesOf(spec.checkpoint_dir)) {
    if (spec.known->checkpoints.contains(entry.filename())) continue;
    if (Status moved = MoveAside(entry, set_aside / "checkpoints", entry.filename()); !moved.ok())
      return moved;
  }
  return {};
}

}  // namespace

Status ClaimSweepFolder(const GangSpec& spec) {
  const std::string mark = std::to_string(spec.identity);
  if (spec.identity == 0 || ReadMark(spec.sweep_dir) == mark) return {};
  const Result<UniqueFd> lock = LockSweeps(spec.sweep_dir.parent_path());
  if (!lock.ok()) return lock.error();
  const std::string found = ReadMark(spec.sweep_dir);
  if (found == mark) return {};
  std::error_code failed;
  // A folder with files but without a mark was made by an earlier version of Attune.
  if (!found.empty() || fs::exists(spec.sweep_dir / "trials", failed)) {
    const std::string name =
        spec.sweep_dir.filename().string() + (found.empty() ? "" : "-" + found);
    if (Status moved = MoveAside(spec.sweep_dir, spec.set_aside_dir, name); !moved.ok())
      return moved;
  }
  if (Status made = MakeFolder(spec.sweep_dir); !made.ok()) return made;
  return WriteSweepMark(spec.sweep_dir, mark);
}

Status ClaimTrialFolder(const GangSpec& spec) {
  if (!spec.known) return {};
  const Result<UniqueFd> lock = LockSweeps(spec.sweep_dir.parent_path());
  if (!lock.ok()) return lock.error();
  const std::string epoch = std::to_string(spec.attempt.epoch);
  if (HasEpoch(spec.attempt_dir, epoch)) return {};
  if (Status moved = MoveUnknown(spec); !moved.ok()) return moved;
  if (Status made = MakeFolder(spec.attempt_dir); !made.ok()) return made;
  return WriteWhole(spec.attempt_dir / kEpochFile, epoch + "\n", kReadableByAll);
}

bool IsResumeGone(const GangSpec& spec) {
  if (!spec.resume || spec.fetch || !spec.HasRankZero()) return false;
  const auto differs = std::ranges::mismatch(spec.sweep_dir, spec.resume->path);
  std::error_code failed;
  return differs.in1 == spec.sweep_dir.end() && !fs::exists(spec.resume->path, failed) && !failed &&
         !ReadMark(spec.sweep_dir).empty();
}

Status SetSweepAside(const fs::path& sweep_dir, uint64_t identity, const fs::path& set_aside_dir) {
  const std::string mark = std::to_string(identity);
  if (ReadMark(sweep_dir) != mark) return {};
  const Result<UniqueFd> lock = LockSweeps(sweep_dir.parent_path());
  if (!lock.ok()) return lock.error();
  if (ReadMark(sweep_dir) != mark) return {};
  return MoveAside(sweep_dir, set_aside_dir, sweep_dir.filename().string() + "-" + mark);
}

}  // namespace attune::gang
