#include "executor/agent/host_lock.h"

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

namespace attune::agent {
namespace {

// REQUIRES: the name is locked.
Result<int64_t> NoteStart(const std::filesystem::path& folder, int64_t wall_us) {
  const std::filesystem::path path = folder / "started";
  int64_t previous_us = 0;
  std::ifstream(path) >> previous_us;  // 0 where there is none, or none that can be read
  const int64_t started_us = StartAfter(std::max<int64_t>(previous_us, 0), wall_us);
  if (auto error = WriteWhole(path, std::to_string(started_us) + "\n")) return *error;
  return started_us;
}

}  // namespace

Result<NameLock> LockName(const std::filesystem::path& data, const std::string& name,
                          int64_t wall_us) {
  if (name.empty() || name[0] == '.' || name.find('/') != std::string::npos) {
    return Error{"an executor cannot be named '" + name +
                 "'; use a name without '/' that does not begin with '.'"};
  }
  const std::filesystem::path path = std::filesystem::absolute(data / "executors" / name / "lock");
  std::error_code failed;
  std::filesystem::create_directories(path.parent_path(), failed);
  UniqueFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock) return Error{"cannot open " + path.string() + ": " + std::strerror(errno)};

  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    std::array<char, 32> holder{};
    [[maybe_unused]] const ssize_t count = pread(lock.get(), holder.data(), holder.size() - 1, 0);
    return Error{"another executor named '" + name + "' runs on this host (pid " + holder.data() +
                 ", " + path.string() + "); stop it, or give this one another name"};
  }
  const std::string pid = std::to_string(getpid());
  if (ftruncate(lock.get(), 0) != 0 ||
      pwrite(lock.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return Error{"cannot write " + path.string() + ": " + std::strerror(errno)};
  }
  const Result<int64_t> started_us = NoteStart(path.parent_path(), wall_us);
  if (!started_us.ok()) return Error{started_us.error()};
  return NameLock{std::move(lock), path.parent_path(), started_us.value()};
}

}  // namespace attune::agent
