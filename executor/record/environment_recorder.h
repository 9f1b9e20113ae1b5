#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "executor/gang/spec.h"
#include "executor/record/child_programs.h"
#include "executor/record/host_description.h"
#include "executor/record/python_packages.h"

namespace attune::agent {

// Records with what the gangs of each sweep run on this host: the versions of Attune, Python and
// its packages, the git commit of the program, the CPU, GPUs, driver and system. It collects a
// record after a gang has started, on its own thread with a low priority, so that no start waits.
// Parts that are not known are left out. A record has no variables of the environment.
//
// All functions are thread-safe. The destructor ends programs that are running.
class EnvironmentRecorder {
 public:
  struct Options {
    std::string version;  // of Attune
    bool has_gpus = false;
    // Time between records of a sweep, unless its program changes.
    std::chrono::milliseconds pause{60'000};
    // Time after which an equal record is passed on again, because the server's log may lack it:
    // the sweep had ended, or a backup was restored.
    std::chrono::milliseconds repeat_after{600'000};
    std::chrono::milliseconds python_timeout{30'000};
    std::chrono::milliseconds git_timeout{10'000};
  };

  // Called on the recorder's thread with a record that differs from the last one of the sweep: JSON
  // with sorted keys, at most kRecordBytesMax bytes. The record applies to the attempt.
  using Sink = std::function<void(const gang::AttemptId&, std::string record)>;

  EnvironmentRecorder(Options options, Sink sink);
  ~EnvironmentRecorder();

  // Call it when the gang has its files.
  void OnGangStarted(const gang::GangSpec& spec);

  void OnGangGone(const gang::AttemptId& attempt);

  // Unless a gang runs, waits until every record that is due was passed on, so that a short sweep
  // has a record although this process ends with it. Gives up after kIdleTimeout.
  static constexpr std::chrono::seconds kIdleTimeout{2};
  void AwaitIdle();

 private:
  using Clock = std::chrono::steady_clock;

  struct Request {
    gang::AttemptId attempt;
    gang::Program program;
    std::string folder;  // of the program: a path, or the digest of its code
    bool has_code = false;
    std::optional<gang::Container> container;
    Clock::time_point due;

    bool IsLike(const Request& other) const;
  };
  // The newest record of a sweep.
  struct Recorded {
    Request request;
    Clock::time_point time;
    size_t hash = 0;  // of the record
    Clock::time_point passed_on;
  };

  void Run();
  void Record(Request request);
  std::string Collect(const Request& request);

  const Options options_;
  const Sink sink_;
  ChildPrograms children_;
  PythonPackages packages_;  // this and host_: only on the recorder's thread
  std::optional<HostDescription> host_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Request> requests_;         // this and the members below: under mutex_
  std::map<uint64_t, Recorded> records_;  // by sweep
  std::set<gang::AttemptId> gangs_;
  bool is_collecting_ = false;
  bool stop_ = false;

  std::thread thread_;  // declared last: it uses all members above
};

}  // namespace attune::agent
