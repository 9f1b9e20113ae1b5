#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/result.h"
#include "executor/gang/channel_types.h"
#include "executor/gang/facts.h"
#include "executor/gang/gang.h"
#include "executor/gang/launcher.h"
#include "executor/gang/socket_folder.h"
#include "executor/gang/spec.h"
#include "executor/processes/cgroup.h"
#include "executor/processes/guard.h"
#include "executor/processes/loop.h"

namespace attune::gang {

// Runs the gangs of one host, their launchers and the guard on its own thread.
//
// The process becomes a child subreaper, so that the supervisor adopts processes that gangs leave
// behind. A process should have only one supervisor. All functions are thread-safe and return
// immediately; the sink receives the results as facts.
class Supervisor {
 public:
  struct Options {
    std::filesystem::path launcher_log_dir;
    std::filesystem::path containers_dir;  // of the ContainerList; empty: containers cannot start
    GangTiming timing;
    Launcher::Options launcher;
    // Replaces launcher.ready_wait for Python programs. A spawned rank would import the same
    // modules, only later and in parallel.
    std::chrono::milliseconds python_ready_wait{10'000};
    Cgroups::Options cgroups;
    // Called on the supervision thread before channels are read: whether more facts may be emitted.
    // If not, workers block when their channels are full, until ResumeReading(). Null: always.
    std::function<bool()> may_read;
    // Called on the supervision thread with a folder that is no longer needed and may exist. It
    // should be deleted on a thread that may block on the disk. Null: the next attempt on this host
    // removes it.
    std::function<void(std::filesystem::path)> discard;
    // Called on the supervision thread: whether a child of this process belongs to other code,
    // which reaps it. Null: no child in another process group does.
    std::function<bool(pid_t)> is_other_child;
    // Maximum disk space of one rank's log (LogLimit); 0: no limit.
    uint64_t log_bytes_max = kLogLimit;
  };

  // REQUIRES: main() has called MaybeRunGuard(); otherwise this returns an error.
  static Result<std::unique_ptr<Supervisor>> Start(Options options, FactSink sink);

  // Cancels all gangs. Returns when no process is left and the sink has all facts.
  ~Supervisor();

  // Starts a gang. Has no effect if the attempt already has a gang.
  void Run(GangSpec spec);

  // Tears a gang down. Like the functions below, it has no effect if the attempt has no gang.
  void Cancel(const AttemptId& attempt, CancelReason reason);

  // Fails a gang (FailureKind::kDisk) because its files fill the disk.
  void EndForDisk(const AttemptId& attempt, std::string message);

  void SetVerdict(const AttemptId& attempt, const Verdict& verdict);

  void Yield(const AttemptId& attempt);
  void OnPeersFinished(const AttemptId& attempt);

  // Rank 0 is on another host and listens there.
  void SetRendezvous(const AttemptId& attempt, const channel::Rendezvous& rank_zero);

  // Kills all gangs and launchers at this time, even if this process is stopped then. The time
  // counts from the start of the machine; zero: never. Replaces the previous deadline.
  void SetDeadline(std::chrono::nanoseconds since_start) { guard_->SetDeadline(since_start); }

  // Resumes reading after may_read() had returned false.
  void ResumeReading();

  // Starts the launcher of a program before its first gang, if the program supports one.
  void PrestartLauncher(Program program);

 private:
  Supervisor(Options options, FactSink sink);

  // Posts a call on the attempt's gang; has no effect if the gang does not exist when the call
  // runs.
  template <typename Call>
  void Post(const AttemptId& attempt, Call call);
  void MakeCgroups();
  void MakeSocketFolder();
  std::unique_ptr<Cgroup> NewCgroup() { return cgroups_ ? cgroups_->Add() : nullptr; }
  void RunGang(GangSpec spec);
  void TrimLogs();
  Result<LauncherChoice> LauncherFor(const LaunchedProgram& program);
  bool IsKnown(pid_t pid) const;
  void ForgetGang(const AttemptId& attempt);
  void ForgetUselessLaunchers();
  void ShutDown();
  void QuitIfEmpty();

  const Options options_;
  const FactSink sink_;
  const ContainerList containers_;
  Loop loop_;
  std::unique_ptr<Cgroups> cgroups_;     // null: not available on this host
  std::optional<SocketFolder> sockets_;  // nullopt: not available on this host
  std::unique_ptr<Guard> guard_;
  // A launcher of a changed program is kept until its last rank has exited. A launcher that died
  // before it was ready is kept as a sign that its program does not work as a launcher.
  struct HeldLauncher {
    std::unique_ptr<Launcher> launcher;
    Loop::Clock::time_point asked_at;  // last use
  };
  std::vector<HeldLauncher> launchers_;
  Loop::Subscription idle_;
  std::map<AttemptId, std::unique_ptr<Gang>> gangs_;
  Loop::Subscription trimming_;  // active while gangs exist
  uint64_t log_room_bytes_ = 0;  // result of the last TrimLogs()
  bool shutting_down_ = false;
  // Must live as long as every child, because their parent-death signals are tied to this thread.
  std::thread thread_;
};

}  // namespace attune::gang
