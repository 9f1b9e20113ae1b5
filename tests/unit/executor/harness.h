#pragma once

#include <gmock/gmock.h>
#include <poll.h>
#include <stdlib.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "executor/gang/folders.h"
#include "executor/gang/supervisor.h"
#include "executor/processes/boot_clock.h"

namespace attune::gang {

// Long enough for a loaded machine under a sanitizer; a test that passes never waits for it.
inline constexpr std::chrono::seconds kDeadline{20};

// Waits until the condition holds, for at most kDeadline; returns whether it does. For files that
// other processes make, because they have no event that a test could wait for.
template <class Condition>
bool AwaitCondition(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "attune-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void WriteFile(const std::filesystem::path& path, const std::string& text,
                      bool executable = false) {
  std::ofstream(path, std::ios::binary) << text;
  if (executable) {
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
}

// The number after `word` in a log, as in `grandchild 123`.
inline pid_t NumberAfter(const std::string& log, const std::string& word) {
  const size_t at = log.find(word + " ");
  return at == std::string::npos ? 0 : std::stoi(log.substr(at + word.size() + 1));
}

// Waits for the end of any process, child or not.
inline bool WaitForEnd(int pidfd) {
  pollfd fd{pidfd, POLLIN, 0};
  return poll(&fd, 1, std::chrono::milliseconds(kDeadline).count()) == 1;
}

// The clock that deadlines use.
inline std::chrono::nanoseconds SinceStart() { return BootClock::now().time_since_epoch(); }

// The facts of a supervisor in the order of their arrival.
class FactLog {
 public:
  FactSink Sink() {
    return [this](Fact fact) {
      const std::lock_guard lock(mutex_);
      facts_.push_back(std::move(fact));
      arrived_.notify_all();
    };
  }

  // The count-th fact of this kind about the attempt, from 1; nullopt if it does not come in time.
  template <typename Kind>
  std::optional<Kind> Wait(const AttemptId& attempt, int count = 1) {
    std::unique_lock lock(mutex_);
    std::optional<Kind> found;
    arrived_.wait_for(lock, kDeadline, [&] {
      int seen = 0;
      for (const Fact& fact : facts_) {
        const Kind* kind = std::get_if<Kind>(&fact.what);
        if (kind && fact.attempt == attempt && ++seen == count) found = *kind;
      }
      return found.has_value();
    });
    return found;
  }

  template <typename Kind>
  int Count(const AttemptId& attempt) {
    const std::lock_guard lock(mutex_);
    int seen = 0;
    for (const Fact& fact : facts_) {
      seen += fact.attempt == attempt && std::holds_alternative<Kind>(fact.what);
    }
    return seen;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Fact> facts_;
};

class GangFixture : public testing::Test {
 protected:
  void SetUp() override { StartSupervisor({}); }

  void StartSupervisor(Supervisor::Options options) {
    supervisor_.reset();
    options.launcher_log_dir = folders_.Launchers();
    if (options.cgroups.identity.empty()) options.cgroups.identity = dir_.path();
    auto supervisor = Supervisor::Start(std::move(options), facts_.Sink());
    ASSERT_TRUE(supervisor.ok()) << supervisor.error().message;
    supervisor_ = std::move(supervisor.value());
  }

  // The spec of a gang of `world_size` ranks on this host, with a new attempt.
  GangSpec Spec(std::vector<std::string> command, int world_size = 1) {
    GangSpec spec;
    spec.attempt = {.sweep = 1, .trial = next_trial_++, .attempt = 1, .epoch = 1};
    spec.program.command = std::move(command);
    spec.program.working_directory = dir_.path();
    spec.world_size = world_size;
    for (int rank = 0; rank < world_size; ++rank) {
      spec.ranks.push_back({.rank = rank, .local_rank = rank});
    }
    spec.milestone = 1000;
    spec.attempt_dir = folders_.Attempt(spec.attempt);
    spec.checkpoint_dir = folders_.Checkpoints(spec.attempt);
    spec.files_dir = folders_.Files(spec.attempt);
    return spec;
  }

  GangSpec PlainWorker(std::vector<std::string> words, int world_size = 1) {
    words.insert(words.begin(), ATTUNE_TEST_PLAIN_WORKER);
    return Spec(std::move(words), world_size);
  }

  GangSpec Script(const std::string& text, int world_size = 1) {
    return Spec({"/bin/sh", "-c", text}, world_size);
  }

  // Runs a gang to its end.
  Ended Run(const GangSpec& spec) {
    supervisor_->Run(spec);
    return WaitForEnded(spec);
  }

  Ended WaitForEnded(const GangSpec& spec) {
    const auto ended = facts_.Wait<Ended>(spec.attempt);
    EXPECT_TRUE(ended) << "the gang did not end";
    return ended.value_or(Ended{});
  }

  // Runs a gang that must fail.
  Failure RunToFailure(const GangSpec& spec) {
    const Ended ended = Run(spec);
    EXPECT_EQ(ended.outcome, Outcome::kFailed);
    return ended.failure.value_or(Failure{});
  }

  std::vector<pid_t> Pids(const GangSpec& spec) {
    return facts_.Wait<Started>(spec.attempt).value_or(Started{}).pids;
  }

  std::string Log(const GangSpec& spec, int rank = 0) {
    return ReadFile(RankLog(spec.attempt_dir, rank));
  }

  TempDir dir_;
  Folders folders_{dir_.path() / "data"};
  FactLog facts_;
  std::unique_ptr<Supervisor> supervisor_;
  uint32_t next_trial_ = 0;
};

}  // namespace attune::gang
