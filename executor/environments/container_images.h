#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "executor/environments/environment_cache.h"
#include "executor/environments/running_command.h"
#include "executor/environments/start_log.h"
#include "executor/gang/spec.h"
#include "executor/processes/containers.h"
#include "executor/processes/loop.h"

namespace attune::agent {

// Pulls the images of containers that gangs on this host need before they start, one after another.
// Podman and Docker keep them; files of Apptainer are in a folder, with the limits of environments.
//
// The first rank's log of each waiting attempt on this host shows the output. If no attempt waits
// for an image any more, its pull ends.
//
// Use on the loop's thread only.
class ContainerImages {
 public:
  struct Options {
    std::filesystem::path folder;  // no other process uses it
    uint64_t bytes_max = 0;        // limit for files that no gang uses
    std::chrono::seconds kept = std::chrono::hours(24);
    std::chrono::milliseconds timeout = std::chrono::hours(2);  // of a pull
  };
  using Services = std::function<Result<RunningCommand::Services>()>;
  // kUnavailable: another attempt may succeed on this host.
  using Done = std::function<void(const gang::AttemptId&, Result<gang::ContainerImage>)>;

  ContainerImages(Options options, gang::Loop& loop, Services services, Done done)
      : options_(std::move(options)),
        cache_(options_.folder),
        loop_(loop),
        services_(std::move(services)),
        done_(std::move(done)) {}

  // `done` follows, unless the attempt is released before. REQUIRES: `spec` has a container.
  void Fetch(const gang::GangSpec& spec);

  // The attempt no longer needs its image.
  void Release(const gang::AttemptId& attempt);

  // Deletes all files that no gang uses.
  void EvictUnused() { Evict(0, {}); }

 private:
  enum class Step { kInspect, kPull, kInspectPulled, kCheck };

  struct Use {
    gang::GangSpec spec;
    std::string key;
    bool waits = true;  // for `done`
    StartLog log = {};
  };
  // An image that attempts wait for.
  struct Wanted {
    gang::ContainerEngine engine;
    std::string image;
    std::string key;
  };

  void StartNext();
  Status Start(const Wanted& wanted);
  Status Run(Step step);
  void OnLine(std::string_view line);
  void OnEnded(std::optional<ExitStatus> status);
  gang::ContainerImage PulledImage(const Wanted& wanted) const {
    return {.engine = wanted.engine, .id = FileOf(wanted.key).string(), .digest = {}};
  }
  std::filesystem::path FileOf(const std::string& key) const {
    return cache_.EnvironmentOf(key) / "image.sif";
  }
  void Fail(const Wanted& wanted, ErrorCode code, const std::string& why);
  void FinishFirst(const Result<gang::ContainerImage>& image);
  void Finish(const gang::AttemptId& attempt, Result<gang::ContainerImage> image);
  bool IsWanted(const std::string& key) const;
  void Evict(uint64_t bytes_max, std::chrono::seconds kept);

  const Options options_;
  const EnvironmentCache cache_;
  gang::Loop& loop_;
  const Services services_;
  const Done done_;
  std::map<gang::AttemptId, Use> uses_;
  std::deque<Wanted> wanted_;  // the first is in progress, if `command_` is set
  Step step_ = Step::kInspect;
  std::unique_ptr<RunningCommand> command_;
  std::deque<std::string> last_lines_;  // of the command's output
  std::string problem_;                 // of the pull, while the engine is checked
  int lines_written_ = 0;
  gang::Loop::Subscription timeout_;
};

}  // namespace attune::agent
