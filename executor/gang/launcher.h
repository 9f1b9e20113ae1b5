#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "channel/launcher.h"
#include "executor/gang/channel_types.h"
#include "executor/processes/cgroup.h"
#include "executor/processes/environment.h"
#include "executor/processes/guard.h"
#include "executor/processes/loop.h"
#include "system/sockets.h"
#include "system/spawn.h"
#include "system/unique_fd.h"

namespace attune::gang {

// Identifies the file of a program. A rebuilt program has a new identity.
struct ProgramIdentity {
  std::filesystem::path path;
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t modified_ns = 0;

  auto operator<=>(const ProgramIdentity&) const = default;
};

Result<ProgramIdentity> IdentifyProgram(const std::filesystem::path& program);

// Everything that a launcher is started with. Code in main() may depend on it, so a launcher serves
// only gangs with the same values.
struct LaunchedProgram {
  std::filesystem::path path;
  std::vector<std::string> argv;
  EnvironmentChanges environment;
  std::filesystem::path working_directory;
  bool is_same_for_all = true;  // for all trials of its sweep

  bool operator==(const LaunchedProgram&) const = default;
};

// The executor's handle of one launcher process (docs/reference/worker-channel.md, "Launchers"): a
// program that has loaded its libraries and forks ranks on request.
//
// Use on the loop's thread only. The destructor kills the launcher and all ranks that it forked.
class Launcher {
 public:
  struct ForkRequest {
    std::vector<std::string> argv;
    EnvironmentChanges environment;
    std::filesystem::path working_directory;
    pid_t process_group = 0;  // 0: a new one
    UniqueFd channel;
    UniqueFd log;
    // Exactly one of `forked` and `unavailable` is called, after Fork() has returned.
    std::function<void(Result<Child>)> forked;
    // The request was not sent: the launcher was not ready in time or has died.
    std::function<void()> unavailable;
    // Called once after a successful `forked` with the child's exit status. nullopt: the launcher
    // died first, and this process must reap the child.
    std::function<void(std::optional<ExitStatus>)> exited;
  };

  struct Options {
    // Time that a rank waits for a launcher that is still loading, before the rank is spawned
    // instead. The launcher itself may load for any time.
    std::chrono::milliseconds ready_wait{2'000};
    // Timeout of a fork request. Only that request fails, but the launcher gets no new requests
    // until it has answered.
    std::chrono::milliseconds fork_timeout{10'000};
    // Time after which an unused launcher is ended.
    std::chrono::milliseconds idle_timeout{600'000};
  };

  // `cgroup` is for the launcher's own process; null: none.
  static Result<std::unique_ptr<Launcher>> Start(
      Loop& loop, Guard& guard, std::unique_ptr<Cgroup> cgroup, const ProgramIdentity& identity,
      const LaunchedProgram& program, const std::filesystem::path& log, const Options& options);
  ~Launcher();

  // Returns false without effect if the request is too large for a packet.
  bool Fork(ForkRequest request);

  // Kills the launcher and its ranks, because it has not reported how a rank ended.
  void OnHang() { Die("did not say how one of its ranks has ended"); }

  const ProgramIdentity& identity() const { return identity_; }
  const LaunchedProgram& program() const { return program_; }
  pid_t pid() const { return child_.pid; }
  const std::filesystem::path& log() const { return log_; }
  bool is_idle() const { return children_.empty() && pending_.empty(); }
  bool is_gone() const { return reaped_; }
  // Why the launcher can no longer be used; empty while it lives.
  const std::string& death() const { return death_; }
  bool was_ready() const { return ready_; }
  bool is_slow() const { return !abandoned_.empty(); }

 private:
  struct Pending {
    std::string packet;
    ForkRequest request;
    bool sent = false;
    Loop::Subscription timeout;
  };

  Launcher(Loop& loop, Guard& guard, ProgramIdentity identity, LaunchedProgram program,
           const Options& options);

  void SendPending();
  void GiveUp(uint64_t request);
  void Receive();
  void OnPacket(Packet packet);
  void OnForked(const channel::Forked& forked, UniqueFd pidfd);
  void OnExit();
  void Die(std::string why);

  Loop& loop_;
  Guard& guard_;
  ProgramIdentity identity_;
  LaunchedProgram program_;
  // Changes that remove or restore variables of the launcher in the environment of a rank.
  std::vector<std::pair<std::string, std::optional<std::string>>> rank_environment_changes_;
  Options options_;
  std::filesystem::path log_;
  std::unique_ptr<Cgroup> cgroup_;
  Child child_;
  UniqueFd socket_;
  Loop::Subscription socket_watch_;
  Loop::Subscription child_watch_;
  Loop::Subscription closed_;
  bool ready_ = false;
  bool reaped_ = false;
  uint64_t next_request_ = 1;
  std::map<uint64_t, Pending> pending_;  // requests without an answer
  std::set<uint64_t> abandoned_;         // requests that timed out without an answer
  std::map<pid_t, std::function<void(std::optional<ExitStatus>)>> children_;
  std::string death_;
};

// How the ranks of a gang can start.
struct LauncherChoice {
  bool built_on_sdk = false;     // the program declares it, so it uses the worker channel
  Launcher* launcher = nullptr;  // null: the ranks must be spawned
};

}  // namespace attune::gang
