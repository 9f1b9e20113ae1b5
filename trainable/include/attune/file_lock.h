#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>

namespace attune::inline sdk {

// A lock on a file, held for as long as the object lives: of all processes and threads of this host
// that lock the same file, one has it. For what the ranks of a host share, such as data that one of
// them prepares and the others use:
//
//   {
//     const attune::FileLock lock("/data/prepared.lock");
//     if (!std::filesystem::exists("/data/prepared")) Prepare();
//   }
//
// It is advisory (flock(2)): it keeps out whoever asks for it, and nobody else. The file is made if
// it is not there, is never written to, and stays; let it be one for the lock alone.
//
// Whatever ends the process, kill -9 included, frees the lock. What the process forks or executes
// does not have it: one that is taken before Main() belongs to no rank. A thread that locks a file
// twice waits for itself.
class FileLock {
 public:
  // Blocks until it has the lock. Throws attune::Error when it has not got it within `timeout`,
  // naming the file and, where the kernel tells, the process that holds it; with a timeout of 0 it
  // asks once. A holder's end is noticed within a tenth of a second, and `while_waiting` is called
  // as often, as for `[&] { context.Heartbeat(); }`.
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
