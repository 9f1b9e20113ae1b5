#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "object_storage/settings.h"
#include "system/spawn.h"
#include "system/unique_fd.h"

namespace attune::object_storage {

// How a process ended.
struct ProcessEnd {
  int exit_code = 0;  // 128 + the signal's number if a signal ended it
  std::string log;    // the end of its standard error, at most Process::kLogBytesMax
};

// A running program whose output is read while it runs. It is killed when the object is destroyed,
// or when the thread that started it ends. One thread at a time uses it.
class Process {
 public:
  static constexpr size_t kLogBytesMax = 16 << 10;
  // How long a process may take to remove unfinished uploads after it was asked to end.
  static constexpr std::chrono::seconds kStopGrace{5};

  // `inherited_fd` becomes kInheritedFd of the process; -1: none. Errors: those of Spawn().
  static Result<Process> Start(const std::filesystem::path& program,
                               const std::vector<std::string>& arguments,
                               const Environment& environment, int inherited_fd = -1);
  Process(Process&&) noexcept;
  Process& operator=(Process&&) = delete;
  ~Process();

  // Waits for output and copies at most `bytes_max` bytes to `to`. Returns the number of bytes; 0:
  // the output has ended. kUnavailable: `stop` was requested; the process has ended.
  Result<size_t> ReadSome(char* to, size_t bytes_max, const std::stop_token& stop);
  // Reads all remaining output, at most `bytes_max` bytes. kInvalid: there is more.
  Result<std::string> ReadAll(size_t bytes_max, const std::stop_token& stop);

  // Waits for the end of the process. REQUIRES: its output has ended. kUnavailable: see ReadSome().
  Result<ProcessEnd> Wait(const std::stop_token& stop);

 private:
  enum class Event { kOutput, kEnd, kStop };

  Process() = default;
  Event WaitForEvent(const std::stop_token& stop);
  size_t ReadLog();
  void End();   // asks the process to end, and kills it after kStopGrace
  void Reap();  // waits until the process has ended

  Child child_;
  UniqueFd out_;
  UniqueFd err_;
  UniqueFd wake_;  // an eventfd that is readable if the caller wants to stop
  std::string log_;
  int exit_code_ = 0;
};

}  // namespace attune::object_storage
