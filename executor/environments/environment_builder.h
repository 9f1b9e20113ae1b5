#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "executor/environments/container_images.h"
#include "executor/environments/environment_build.h"
#include "executor/environments/environment_cache.h"
#include "executor/environments/interpreter.h"
#include "executor/environments/package_files.h"
#include "executor/environments/running_command.h"
#include "executor/environments/start_log.h"
#include "executor/gang/spec.h"
#include "executor/processes/guard.h"
#include "executor/processes/loop.h"

namespace attune::agent {

struct BuiltEnvironment {
  std::filesystem::path folder;  // of the virtual environment; empty: there is an image
  std::optional<gang::ContainerImage> image = {};
  std::string error;           // empty: no error
  bool is_host_fault = false;  // the error is probably not that of the files
};

// Builds the Python environments that gangs on this host need before they start, one at a time on
// its own thread. It also pulls the images of containers (container_images.h). Gangs with the same
// files and the same Python share an environment. The key of an environment is a hash of what the
// files say, of the interpreter and of the platform.
//
// The first rank's log of each waiting attempt on this host shows the output of the build. If no
// attempt waits for it any more, the build ends. Its processes do not outlive this process.
//
// An environment that no gang uses is kept for later gangs: for Options::kept, and then up to
// Options::bytes_max. If the disk is short, it is deleted at once. The least recently used
// environments are deleted first.
class EnvironmentBuilder {
 public:
  struct Options {
    std::filesystem::path folder;  // of environments; no other process uses it
    std::filesystem::path images;  // of image files; no other process uses it
    uint64_t bytes_max = 0;        // limit for environments that no gang uses
    // After the last use. The next trial often starts just after the last one has ended.
    std::chrono::seconds kept = std::chrono::hours(24);
    uint64_t disk_free_bytes_min = 0;                           // no build starts with less
    std::chrono::milliseconds timeout = std::chrono::hours(2);  // of a build
  };

  // Called on the builder's thread; must not block.
  using Done = std::function<void(const gang::AttemptId& attempt, BuiltEnvironment built)>;

  // `processes` must outlive this object. REQUIRES: main() has called gang::MaybeRunGuard().
  EnvironmentBuilder(Options options, CommandProcesses& processes, Done done);
  ~EnvironmentBuilder();  // ends the current build

  // `done` follows, unless the attempt is released before. This and the functions below are
  // thread-safe. REQUIRES: `spec` has a container, or environment files with absolute paths.
  void Build(gang::GangSpec spec);

  // The attempt no longer needs its environment.
  void Release(const gang::AttemptId& attempt);

  // Deletes all environments that no gang uses, because the disk is short.
  void EvictUnused();

 private:
  static constexpr int kChangesMax = 3;

  struct Use {
    gang::GangSpec spec;
    std::string key = {};  // empty: not known yet
    bool waits = true;     // for `done`
    int changes = 0;       // how often the files have changed during a build
    StartLog log = {};
  };
  // What an environment is built from.
  struct Inputs {
    PackageFiles files;
    Interpreter interpreter;
    std::string key;
  };
  static Result<Inputs> ReadInputs(const gang::GangSpec& spec, const Interpreter& interpreter);
  static bool HasKey(const gang::GangSpec& spec, const Interpreter& interpreter,
                     const std::string& key);

  Result<RunningCommand::Services> StartServices();
  void DescribeNext();
  Status Describe(const gang::AttemptId& attempt);
  void OnDescribed(const gang::AttemptId& attempt, const std::filesystem::path& located);
  void Place(const gang::AttemptId& attempt, const Interpreter& interpreter);
  void BuildNext();
  Status StartBuild(const Inputs& inputs);
  bool HasDiskSpace() const;
  void OnBuilt(Status built);
  void PlaceAgain(const std::string& key);
  void FinishAll(const Inputs& inputs, const Status& built);
  void Finish(const gang::AttemptId& attempt, Result<std::filesystem::path> environment);
  void PassOn(const gang::AttemptId& attempt, Result<gang::ContainerImage> image);
  void ReleaseNow(const gang::AttemptId& attempt);
  std::vector<gang::AttemptId> WaitingFor(const std::string& key) const;
  void Evict(uint64_t bytes_max, std::chrono::seconds kept);
  void WriteLineToAll(const std::string& key, std::string_view line);

  const Options options_;
  const Done done_;
  const EnvironmentCache cache_;
  CommandProcesses& processes_;
  gang::Loop loop_;
  std::unique_ptr<ContainerImages> images_;
  // The members below are used on the loop's thread only.
  std::unique_ptr<gang::Guard> guard_;  // null: there was no command yet
  KnownInterpreters interpreters_;
  std::map<gang::AttemptId, Use> uses_;
  std::deque<gang::AttemptId> to_describe_;  // attempts whose interpreter is not known
  std::unique_ptr<RunningCommand> description_;
  std::vector<std::string> description_lines_;
  gang::Loop::Subscription description_timeout_;
  std::deque<Inputs> to_build_;  // the first is in progress, if `build_` is set
  std::unique_ptr<EnvironmentBuild> build_;
  gang::Loop::Clock::time_point build_began_;
  int lines_written_ = 0;  // lines of the build in the logs of ranks

  std::thread thread_;  // declared last: it uses all members above
};

}  // namespace attune::agent
