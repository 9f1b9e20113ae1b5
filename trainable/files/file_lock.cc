#include "attune/file_lock.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iomanip>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "attune/error.h"
#include "system/unique_fd.h"
#include "trainable/base/sockets.h"

namespace attune::inline sdk {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono_literals::operator""ms;

// No event tells when another process releases the lock. flock(2) either does not wait, or waits
// without a limit until a signal, and signals belong to the program. So it polls at growing
// intervals: at most ten calls a second, which cost a microsecond each.
constexpr auto kFirstPause = 1ms;
constexpr auto kLongestPause = 100ms;

// Lock descriptors of this process. A lock belongs to the open file description of open(2), which a
// forked child shares. The child's copy would hold the lock after the death of this process.
struct Descriptors {
  std::mutex mutex;
  std::set<UniqueFd*> open;
};

Descriptors& LockDescriptors() {
  static Descriptors* const descriptors = [] {
    pthread_atfork([] { LockDescriptors().mutex.lock(); }, [] { LockDescriptors().mutex.unlock(); },
                   [] {
                     for (UniqueFd* fd : LockDescriptors().open) fd->reset();
                     LockDescriptors().open.clear();
                     LockDescriptors().mutex.unlock();
                   });
    return new Descriptors;  // never destroyed, because the handlers stay registered
  }();
  return *descriptors;
}

// Describes the process that holds the lock of an open file. The kernel does not show a process in
// another container. Some stacked file systems show a different device from that of the file.
std::string HolderText(int fd) {
  struct stat file {};
  fstat(fd, &file);
  std::ostringstream wanted;
  wanted << std::hex << std::setfill('0') << std::setw(2) << major(file.st_dev) << ':'
         << std::setw(2) << minor(file.st_dev) << ':' << std::dec << file.st_ino;
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, advisory, mode, where;
    pid_t pid = 0;
    if (!(words >> number >> kind >> advisory >> mode >> pid >> where)) continue;
    if (kind != "FLOCK" || where != wanted.str() || pid <= 0) continue;
    if (pid == getpid()) return "this process itself";
    std::string name;
    std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/comm"), name);
    return "process " + std::to_string(pid) + (name.empty() ? "" : " (" + name + ")");
  }
  return "a process that is not visible here";
}

}  // namespace

struct FileLock::State {
  UniqueFd fd;

  explicit State(const std::filesystem::path& path) {
    const std::lock_guard guard(LockDescriptors().mutex);
    fd.reset(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    // A read-only file of another user can be locked too.
    if (!fd.valid() && (errno == EACCES || errno == EROFS)) {
      fd.reset(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    }
    if (!fd.valid()) trainable::ThrowErrno("FileLock: " + path.string());
    LockDescriptors().open.insert(&fd);
  }

  ~State() {
    const std::lock_guard guard(LockDescriptors().mutex);
    LockDescriptors().open.erase(&fd);
    // Closing is not enough: a program that is being started has a copy until its exec.
    if (fd.valid()) flock(fd.get(), LOCK_UN);
    fd.reset();
  }

  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

FileLock::FileLock(const std::filesystem::path& path, std::chrono::milliseconds timeout,
                   const std::function<void()>& while_waiting)
    : state_(std::make_unique<State>(path)) {
  const auto began = Clock::now();
  Clock::duration pause = kFirstPause;
  while (flock(state_->fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) {
      trainable::ThrowErrno("FileLock: " + path.string() + ": cannot be locked");
    }
    const Clock::duration waited = Clock::now() - began;
    if (waited >= timeout) {
      std::ostringstream message;
      message << "FileLock: " << path.string() << ": not free after " << std::fixed
              << std::setprecision(1) << std::chrono::duration<double>(waited).count()
              << " s; it is held by " << HolderText(state_->fd.get())
              << "; end that process, or wait longer";
      throw Error(message.str());
    }
    if (while_waiting) while_waiting();
    std::this_thread::sleep_for(std::min<Clock::duration>(pause, timeout - waited));
    pause = std::min<Clock::duration>(2 * pause, kLongestPause);
  }
}

FileLock::~FileLock() = default;
FileLock::FileLock(FileLock&&) noexcept = default;
FileLock& FileLock::operator=(FileLock&&) noexcept = default;

}  // namespace attune::inline sdk
