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

// Nothing tells when another process lets go: flock(2) either waits without an end, which only a
// signal could cut short, and signals are the program's own, or not at all. So it is asked again,
// at growing intervals: ten calls a second that cost a microsecond each.
constexpr auto kFirstPause = 1ms;
constexpr auto kLongestPause = 100ms;

// Descriptors of this process. A lock belongs to what open(2) made, which a forked child shares:
// its copy would hold the lock beyond the death of the process that took it.
struct Descriptors {
  std::mutex mutex;
  std::set<UniqueFd*> open;
};

Descriptors& OfThisProcess() {
  static Descriptors* const descriptors = [] {
    pthread_atfork([] { OfThisProcess().mutex.lock(); }, [] { OfThisProcess().mutex.unlock(); },
                   [] {
                     for (UniqueFd* fd : OfThisProcess().open) fd->reset();
                     OfThisProcess().open.clear();
                     OfThisProcess().mutex.unlock();
                   });
    return new Descriptors;  // never destroyed: the handlers stay
  }();
  return *descriptors;
}

// The process that holds the lock of an open file, in words. The kernel shows it, unless it runs
// in another container; some stacked file systems show another device than that of the file.
std::string Holder(int fd) {
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
  return "a process that cannot be seen from here";
}

}  // namespace

struct FileLock::State {
  UniqueFd fd;

  explicit State(const std::filesystem::path& path) {
    const std::lock_guard guard(OfThisProcess().mutex);
    fd.reset(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    // Another user's file that may only be read can be locked all the same.
    if (!fd.valid() && (errno == EACCES || errno == EROFS)) {
      fd.reset(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    }
    if (!fd.valid()) trainable::ThrowErrno("FileLock: " + path.string());
    OfThisProcess().open.insert(&fd);
  }

  ~State() {
    const std::lock_guard guard(OfThisProcess().mutex);
    OfThisProcess().open.erase(&fd);
    // Not by closing alone: a program that is being started has a copy until its exec.
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
              << " s; it is held by " << Holder(state_->fd.get())
              << ", whose end frees it: end it, or wait longer";
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
