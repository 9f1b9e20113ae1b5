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
#include "executor/gang/facts.h"
#include "executor/gang/gang.h"
#include "executor/gang/launcher.h"
#include "executor/gang/socket_folder.h"
#include "executor/gang/spec.h"
#include "executor/gang/words.h"
#include "executor/processes/cgroup.h"
#include "executor/processes/guard.h"
#include "executor/processes/loop.h"

namespace attune::gang {

// Runs the gangs of one host on a thread of its own, with their launchers and the guard.
//
// The process becomes a child subreaper, so that what a gang's processes leave behind comes to this
// supervisor; there should be one in a process. All functions may be called by any thread and
// return at once; what happens is told to the sink.
class Supervisor {
 public:
  struct Options {
    std::filesystem::path launcher_log_dir;
    GangTiming timing;
    Launcher::Options launcher;
    // In place of launcher.ready_wait, where Python loads: a rank that was spawned would import the
    // same, from a later start and beside it.
    std::chrono::milliseconds python_ready_wait{10'000};
    Cgroups::Options cgroups;
    // Asked on the supervision thread before channels are read: whether there is room for more
    // facts. Where not, workers wait once their channels are full, until ReadOn(). Null: there
    // always is.
    std::function<bool()> may_read;
    // Called on the supervision thread with a folder that nobody needs any more, which may be
    // there: to be deleted by a thread that may wait for the disk. Null: it stays for the next
    // attempt on this host, which removes it.
    std::function<void(std::filesystem::path)> discard;
    // How much of a disk the log of a rank may take (LogLimit); 0: as much as it likes.
    uint64_t log_bytes_max = kLogLimit;
  };

  // REQUIRES: main called MaybeRunGuard(); without, it is an error.
  static Result<std::unique_ptr<Supervisor>> Start(Options options, FactSink sink);

  // Cancels what runs, and returns when no process is left and the sink has been told.
  ~Supervisor();

  // Starts a gang. Nothing happens if one with this attempt is there already.
  void Run(GangSpec spec);

  // Tears a gang down. Nothing happens if there is none.
  void Cancel(const AttemptId& attempt, CancelReason reason);

  // Ends a gang as failed (FailureKind::kDisk), because its files fill the disk.
  void EndForDisk(const AttemptId& attempt, std::string message);

  void Tell(const AttemptId& attempt, const Verdict& verdict);

  void Yield(const AttemptId& attempt);
  void Finish(const AttemptId& attempt);

  // Rank 0 is on another host, and listens there.
  void Meet(const AttemptId& attempt, const channel::Rendezvous& rank_zero);

  // When all that runs is killed, launchers included, even if this process stands still by then; in
  // time since the machine started, and zero is never. Replaces the deadline before it.
  void SetDeadline(std::chrono::nanoseconds since_start) { guard_->SetDeadline(since_start); }

  // There is room again after may_read() said that there is none.
  void ReadOn();

  // Starts the launcher of a program ahead of its first gang, if it can have one.
  void Warm(Program program);

 private:
  Supervisor(Options options, FactSink sink);

  // Posts a call on the attempt's gang; nothing happens if there is none by then.
  template <typename Call>
  void Post(const AttemptId& attempt, Call call);
  void MakeCgroups();
  void MakeSocketFolder();
  std::unique_ptr<Cgroup> NewCgroup() { return cgroups_ ? cgroups_->Add() : nullptr; }
  void RunGang(GangSpec spec);
  void TrimLogs();
  Result<WarmStart> LauncherFor(const LaunchedProgram& program);
  bool IsKnown(pid_t pid) const;
  void ForgetGang(const AttemptId& attempt);
  void ForgetUselessLaunchers();
  void ShutDown();
  void QuitIfEmpty();

  const Options options_;
  const FactSink sink_;
  Loop loop_;
  std::unique_ptr<Cgroups> cgroups_;     // null: there can be none here
  std::optional<SocketFolder> sockets_;  // empty: there can be none here
  std::unique_ptr<Guard> guard_;
  // Those of changed programs stay until their last rank has left; one that was never ready stays
  // as a sign that its program cannot be a launcher.
  struct Held {
    std::unique_ptr<Launcher> launcher;
    Loop::Clock::time_point asked_at;  // by a gang, or for one
  };
  std::vector<Held> launchers_;
  Loop::Subscription idle_;
  std::map<AttemptId, std::unique_ptr<Gang>> gangs_;
  Loop::Subscription trimming_;  // while there are gangs
  uint64_t log_room_bytes_ = 0;  // what was left when logs were trimmed last
  bool shutting_down_ = false;
  // Lives as long as every child: their parent-death signals are tied to it.
  std::thread thread_;
};

}  // namespace attune::gang
