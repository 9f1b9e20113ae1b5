#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>

namespace attune::inline sdk {

// A lock on a file, held while the object exists. Only one process or thread of this host holds the
// lock of a file at a time. Use it for resources that ranks of a host share, such as data that one
// of them prepares for all:
//
//   {
//     const attune::FileLock lock("/data/prepared.lock");
//     if (!std::filesystem::exists("/data/prepared")) Prepare();
//   }
//
// The lock is advisory (flock(2)): it excludes only code that also takes it. A missing file is
// created; the file is never written to or removed. Use a file that has no other purpose.
//
// The lock is released when the process ends, even by kill -9. Forked and executed processes do not
// inherit it: a lock taken before Main() belongs to no rank. A thread that locks the same file
// twice waits for itself.
class FileLock {
 public:
  // Blocks until it holds the lock. After `timeout`, throws attune::Error with the file and, if the
  // kernel tells, the process that holds the lock. With a timeout of 0 it tries once. It notices a
  // released lock within a tenth of a second, and calls `while_waiting` at the same interval, for
  // example `[&] { context.Heartbeat(); }`.
  explicit FileLock(const std::filesystem::path& path,
                    std::chrono::milliseconds timeout = std::chrono::minutes(30),
                    const std::function<void()>& while_waiting = {});
  ~FileLock();
  FileLock(FileLock&&) noexcept;
  FileLock& operator=(FileLock&&) noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attune::inline sdk
