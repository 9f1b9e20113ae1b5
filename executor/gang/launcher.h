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
#include "executor/gang/words.h"
#include "executor/processes/cgroup.h"
#include "executor/processes/environment.h"
#include "executor/processes/guard.h"
#include "executor/processes/loop.h"
#include "system/sockets.h"
#include "system/spawn.h"
#include "system/unique_fd.h"

namespace attune::gang {

// Which file a launcher was started from. A program that is built anew is another one.
struct ProgramIdentity {
  std::filesystem::path path;
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t modified_ns = 0;

  auto operator<=>(const ProgramIdentity&) const = default;
};

Result<ProgramIdentity> Identify(const std::filesystem::path& program);

// What a program is started with. What main() does before it is a launcher may depend on all of it,
// so launchers are kept apart by it.
struct LaunchedProgram {
  std::filesystem::path path;
  std::vector<std::string> argv;
  EnvironmentChanges environment;
  std::filesystem::path working_directory;
  bool is_same_for_all = true;  // for every trial of its sweep

  bool operator==(const LaunchedProgram&) const = default;
};

// The executor's end of one launcher process (docs/reference/worker-channel.md, "Launchers"): a
// program that has loaded its libraries and forks ranks on request.
//
// Used on the loop's thread only. Destroying it kills the launcher and every rank forked from it.
class Launcher {
 public:
  struct ForkRequest {
    std::vector<std::string> argv;
    EnvironmentChanges environment;
    std::filesystem::path working_directory;
    pid_t process_group = 0;  // 0: a new one
    UniqueFd channel;
    UniqueFd log;
    // Exactly one call of either, later than this function's return.
    std::function<void(Result<Child>)> forked;
    std::function<void()> unavailable;  // it was not asked: not ready in time, or dead before
    // After a successful `forked`, exactly once: how the child ended, or nothing when the launcher
    // died first; the child is then this process's to reap.
    std::function<void(std::optional<ExitStatus>)> exited;
  };

  struct Options {
    // How long a rank waits for a launcher that still loads, before it is spawned instead. The
    // launcher may load for as long as it likes.
    std::chrono::milliseconds ready_wait{2'000};
    // Within which a fork is answered. One that is not fails alone, and the launcher, which must be
    // in trouble, is not asked for another until it has answered.
    std::chrono::milliseconds fork_timeout{10'000};
    // After which a launcher that no gang has asked for ends.
    std::chrono::milliseconds idle_timeout{600'000};
  };

  // `cgroup` is for its own process; null: there is none.
  static Result<std::unique_ptr<Launcher>> Start(
      Loop& loop, Guard& guard, std::unique_ptr<Cgroup> cgroup, const ProgramIdentity& identity,
      const LaunchedProgram& program, const std::filesystem::path& log, const Options& options);
  ~Launcher();

  // False, and nothing happens, if the request is too large for a packet.
  bool Fork(ForkRequest request);

  // It has not said how a rank has ended: it is killed, and its ranks with it.
  void OnHang() { Die("did not say how one of its ranks has ended"); }

  const ProgramIdentity& identity() const { return identity_; }
  const LaunchedProgram& program() const { return program_; }
  pid_t pid() const { return child_.pid; }
  const std::filesystem::path& log() const { return log_; }
  bool is_idle() const { return children_.empty() && pending_.empty(); }
  bool is_gone() const { return reaped_; }
  // Why it is of no more use; empty while it lives.
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
  // Of its environment what a rank is not to have.
  std::vector<std::pair<std::string, std::optional<std::string>>> not_of_ranks_;
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
  std::map<uint64_t, Pending> pending_;  // asked for and not answered
  std::set<uint64_t> abandoned_;         // asked for, not answered, and no longer waited for
  std::map<pid_t, std::function<void(std::optional<ExitStatus>)>> children_;
  std::string death_;
};

// How a gang's ranks may start.
struct WarmStart {
  bool built_on_sdk = false;     // the program says so, and so speaks the worker channel
  Launcher* launcher = nullptr;  // null: its ranks are to be spawned
};

}  // namespace attune::gang
