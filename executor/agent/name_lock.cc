#include "executor/agent/name_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "system/files.h"
#include "system/system_error.h"

namespace attune::agent {
namespace {

// REQUIRES: the name is locked.
Result<int64_t> NoteStart(const std::filesystem::path& folder, int64_t wall_us) {
  const std::filesystem::path path = folder / "started";
  int64_t previous_us = 0;
  std::ifstream(path) >> previous_us;  // 0 if the file is missing or unreadable
  const int64_t started_us = NextStartTime(std::max<int64_t>(previous_us, 0), wall_us);
  const std::string text = std::to_string(started_us) + "\n";
  if (Status written = WriteWhole(path, text, kReadableByAll); !written.ok())
    return written.error();
  return started_us;
}

}  // namespace

Result<NameLock> LockName(const std::filesystem::path& data, const std::string& name,
                          int64_t wall_us) {
  if (name.empty() || name[0] == '.' || name.find('/') != std::string::npos) {
    return Invalid("an executor cannot be named '" + name +
                   "'; use a name without '/' that does not begin with '.'");
  }
  const std::filesystem::path path = std::filesystem::absolute(data / "executors" / name / "lock");
  std::error_code failed;
  std::filesystem::create_directories(path.parent_path(), failed);
  Result<UniqueFd> lock = LockFile(path, kReadableByAll);
  if (!lock.ok() && lock.error().code == ErrorCode::kConflict) {
    const Result<std::string> holder = ReadWord(path);
    return Error{ErrorCode::kConflict, "another executor named '" + name +
                                           "' runs on this host (pid " +
                                           (holder.ok() ? *holder : "") + ", " + path.string() +
                                           "); stop it, or give this one another name"};
  }
  if (!lock.ok()) return lock.error();
  const std::string pid = std::to_string(getpid());
  if (ftruncate(lock->get(), 0) != 0 || !WriteAt(lock->get(), pid, 0)) {
    return SystemError("cannot write " + path.string(), errno);
  }
  const Result<int64_t> started_us = NoteStart(path.parent_path(), wall_us);
  if (!started_us.ok()) return started_us.error();
  return NameLock{*std::move(lock), path.parent_path(), started_us.value()};
}

}  // namespace attune::agent
