#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "channel/messages.h"
#include "executor/gang/blame.h"
#include "executor/gang/facts.h"
#include "executor/gang/launcher.h"
#include "executor/gang/leftovers.h"
#include "executor/gang/preparation.h"
#include "executor/gang/rank.h"
#include "executor/gang/socket_folder.h"
#include "executor/gang/spec.h"
#include "executor/logs/log_limit.h"
#include "executor/logs/log_reports.h"
#include "executor/processes/cgroup.h"
#include "executor/processes/container_list.h"
#include "executor/processes/environment.h"
#include "executor/processes/guard.h"
#include "executor/processes/held_port.h"
#include "executor/processes/loop.h"
#include "system/spawn.h"
#include "system/unique_fd.h"

namespace attune::gang {

// Why a gang is cancelled. "With a grace": its processes have GangSpec::grace to exit after
// SIGTERM.
enum class CancelReason {
  kUnwanted,         // ends as kCancelled, with a grace
  kFailedElsewhere,  // its ranks on another host have failed: ends as kCancelled
  kLeaving,          // its executor ends: ends as kFailed with FailureKind::kLease, with a grace
  kLeaseLost,        // ends as kFailed with FailureKind::kLease
  // Its executor will end soon and has asked the gang to save and exit first. If SIGTERM or SIGKILL
  // ends a rank, the gang ends as with kLeaving; otherwise it ends by itself.
  kLeavingSoon,
};

struct GangTiming {
  // Time from a rank's `error` line to the teardown, so that the rank can exit by itself.
  std::chrono::milliseconds failure_grace{100};
  // Time from a rank's end by SIGTERM or SIGKILL to the teardown. A batch system signals all
  // processes of a job, so the executor may be told to end as well.
  std::chrono::milliseconds leave_grace{0};
  // Replaces failure_grace if the `error` line comes from a victim and the cause is not known yet.
  // An exiting interpreter closes its sockets long before its process ends.
  std::chrono::milliseconds victim_grace{900};
  // Replaces failure_grace while a rank announces its exit, because its exit status may name the
  // cause.
  std::chrono::milliseconds leaving_grace{10'000};
  // Maximum silence of a rank after the first rank has finished; the stall timeout if that is
  // longer.
  std::chrono::milliseconds finish_timeout{30'000};
  // Time for the other ranks to exit after rank 0 has exited because of a verdict.
  std::chrono::milliseconds follow_timeout{5'000};
  // Time for a next program to join after the program that spoke for the rank has exited. A wrapper
  // script may run several programs in sequence.
  std::chrono::milliseconds successor_grace{3'000};
  // Time for a launcher to report how its rank has ended; a launcher that takes longer is killed.
  std::chrono::milliseconds explain_timeout{10'000};
};

// All ranks of an attempt on this host. They are started together, and torn down together if one
// fails.
//
// Life cycle: Start(), then facts until Ended, then `gone`. Use on the loop's thread only.
class Gang final : private Rank::Owner {
 public:
  struct Services {
    Loop& loop;
    Guard& guard;
    GangTiming timing;
    // Makes a cgroup for the ranks and their descendants; returns null if cgroups are not
    // available.
    std::function<std::unique_ptr<Cgroup>()> cgroup;
    SocketFolder* sockets = nullptr;  // null: not available
    const ContainerList& containers;
    // Finds or starts a launcher for the program, if it supports one.
    std::function<Result<LauncherChoice>(const LaunchedProgram& program)> launcher_for;
    FactSink facts;
    // Whether more facts may be emitted now; null: always.
    std::function<bool()> may_read;
    std::function<void(std::filesystem::path)> discard;  // see Supervisor::Options
    uint64_t log_bytes_max = 0;                          // see Supervisor::Options
    // See Leftovers::Services.
    std::function<bool(pid_t)> is_known;
    std::function<bool(const AttemptId&)> other_gangs_run;
    // Called after Ended; the gang may be destroyed after the call has returned.
    std::function<void(const AttemptId&)> gone;
  };

  Gang(const Services& services, GangSpec spec);

  void Start();
  void Cancel(CancelReason reason);

  // Delivers the verdict to rank 0 when rank 0 waits at its step; once for each step.
  void SetVerdict(const Verdict& verdict);

  // Asks rank 0 to wait for a verdict at its next report. Has no effect if that verdict is already
  // pending.
  void Yield();

  // A rank has finished, on this or another host: from now on the others are laggards.
  void OnFinished();

  // Tells ranks on a host without rank 0 where rank 0 listens. Only the first call counts.
  void SetRendezvous(const channel::Rendezvous& rank_zero);

  // More facts may be emitted again.
  void ResumeReading();

  // Fails the gang because its files fill the disk.
  void EndForDisk(std::string message) { Fail(FailureKind::kDisk, -1, std::move(message)); }

  // Keeps the logs of its ranks within their limit. Returns how many bytes a log may grow before
  // the next call is due.
  uint64_t TrimLogs();

  // The launcher that forked its ranks; null if they were spawned.
  const Launcher* launcher() const { return launcher_; }

  // Whether the child of this process is a rank, or removes the container of one.
  bool has_child(pid_t pid) const;

 private:
  enum class Phase { kStarting, kRunning, kEnding, kGone };
  // The descriptors that a rank gets: its end of the channel, and its log.
  struct Outlets {
    UniqueFd channel;
    UniqueFd log;
  };

  void OnMessage(Rank& rank, channel::FromRank message) override;
  void OnBadLine(Rank& rank, const std::string& problem) override;
  void OnExit(Rank& rank) override;
  void OnUnexplained() override;
  Result<channel::Start> StartLine(const Rank& rank) override;
  void OnClaimed(Rank& rank) override;
  void OnProgramLeft() override { CheckWaits(); }
  std::optional<Action> ActionAt(int64_t step) const override;
  bool MayRead() override { return !services_.may_read || services_.may_read(); }

  void Handle(Rank& rank, const channel::Rendezvous& rendezvous);
  void Handle(Rank& rank, Report report);
  void Handle(Rank& rank, Logged logged);
  void Handle(Rank& rank, CheckpointSaved checkpoint);
  void Handle(Rank& rank, const channel::Progress& progress);
  void Handle(Rank& rank, const channel::Heartbeat& heartbeat);
  void Handle(Rank& rank, const channel::Waiting& waiting);
  void Handle(Rank& rank, const channel::Leaving& leaving);
  void Handle(Rank& rank, const channel::ErrorText& error);
  void Handle(Rank& rank, const channel::Done& done);
  void Handle(Rank&, const channel::Join&) {}   // the rank has joined already
  void Handle(Rank&, const channel::Claim&) {}  // and speaks already
  void Handle(Rank&, const channel::Unknown&) {}

  // Starting (gang_start.cc).
  Status PrepareRendezvous();
  SharedRendezvous MakeSharedRendezvous() const;
  EnvironmentChanges BuildEnvironment(const Rank& rank) const;
  void ListenForDescendants(Rank& rank);
  std::optional<Outlets> OpenOutlets(Rank& rank);  // nullopt: the gang has failed
  void SpawnAll();
  Result<Child> SpawnRank(const Rank& rank, const Outlets& outlets);
  void ForkOne(size_t index);
  void OnForked(size_t index, Result<Child> child);
  FailureKind ForkFailureKind() const;  // depends on the state of the launcher
  void OnUnavailable(size_t index);
  void OnLauncherReport(Rank& rank, std::optional<ExitStatus> status);
  void Attach(Rank& rank, Child child, Rank::Parent parent);
  void OnAllStarted();
  void RelayRendezvous();

  // Ranks in containers (gang_containers.cc).
  bool HasNamedContainers() const;
  Result<Child> SpawnInContainer(const Rank& rank, const Outlets& outlets);
  void OnRemoved(std::string name);
  bool AreContainersRemoved();  // if not, ConcludeIfGone() follows
  void BlameEngine(Failure& failure) const;

  // Failing and ending (gang_end.cc).
  Symptom& SymptomOf(const Rank& rank);
  std::optional<int> FirstExited() const;
  void JudgeSymptoms();
  void ExplainSilence();
  void EndAfterLeaveGrace(std::optional<Failure> failure);
  void Fail(FailureKind kind, int rank, std::string message);
  void FailToStart(FailureKind kind, int rank, const Error& error);
  void End(Outcome outcome, std::optional<Failure> failure);
  void EndWithGrace(Outcome outcome, std::optional<Failure> failure);
  bool BeginEnd(Outcome outcome, std::optional<Failure> failure);
  void EndGrace();
  // Whether its processes got SIGTERM and the grace is not over.
  bool has_grace() const { return phase_ == Phase::kEnding && grace_; }
  void TerminateLeftovers();
  void KillAll();
  void ConcludeIfGone();
  void Conclude();
  uint64_t DiscardUnfinished();
  LogMatch FindInFailure(const Failure& failure) const;

  // Reports and verdicts.
  void AcceptReport(Report report);
  bool ReadLog();  // true if everything printed so far has been read
  void ResumeReadingLog();
  bool RankZeroWaits(const Report& report) const;
  void DeliverVerdict();
  void SendYield();

  // Watching (gang_watch.cc).
  void ResetSilence(Rank& rank);
  void ExcuseRanksAheadOf(const Rank& rank);
  bool UsesChannel() const;
  void CheckWait(Rank& rank);
  void CheckWaits();
  Loop::Clock::time_point ExcusedUntil(const Rank& rank) const;
  bool IsWaiting(const Rank& rank) const;
  bool LeavesReportsToRankZero(const Rank& rank) const;
  bool IsWatched(const Rank& rank) const;
  void WatchForStall();
  bool IsOutcomeDecided(const Rank& rank) const;
  void OnRankZeroLeft();
  bool HasRunningRank() const;
  void FinishIfAllLeft();
  void WatchForLaggards();
  void Emit(decltype(Fact::what) what);
  Rank* RankZero() const;

  Services services_;
  GangSpec spec_;
  Preparation preparation_;
  std::optional<HeldPort> port_;             // none if rank 0 is on another host
  std::unique_ptr<LogReports> log_reports_;  // null: reports come over the channel
  std::vector<LogLimit> log_limits_;         // one per rank of this host; empty: no limit
  std::unique_ptr<Cgroup> cgroup_;
  Leftovers leftovers_;
  Launcher* launcher_ = nullptr;
  bool built_on_sdk_ = false;
  std::vector<std::unique_ptr<Rank>> ranks_;
  struct NamedContainer {
    std::string name;
    Child removal;  // the follow-up of the rank's process
    Loop::Subscription removed;
  };
  std::vector<NamedContainer> containers_;  // that have not been removed yet
  Loop::Subscription removal_timeout_;
  Phase phase_ = Phase::kStarting;
  pid_t group_ = 0;
  int forks_pending_ = 0;

  std::optional<channel::Rendezvous> rendezvous_;
  std::vector<int> stepped_;  // ranks that have finished their first step
  int64_t last_step_;
  bool reported_ = false;
  int64_t logged_ = 0;  // number of log messages of rank 0
  int64_t milestone_;
  std::optional<int64_t> waiting_at_;  // the step at which rank 0 waits for a verdict
  std::optional<Verdict> verdict_;     // not yet delivered
  int64_t delivered_step_ = 0;
  bool yielding_ = false;       // Yield() was called since the last verdict
  bool told_to_leave_ = false;  // a verdict told rank 0 to exit
  Action leave_action_ = Action::kStop;
  // The time of the start or of the last verdict.
  Loop::Clock::time_point resumed_at_;
  std::optional<Loop::Clock::time_point> first_finish_;
  bool laggards_are_ended_ = false;  // rank 0 has exited as told

  std::vector<Symptom> symptoms_;
  Outcome outcome_ = Outcome::kFinished;
  // Set if known when the end began; otherwise derived from symptoms_.
  std::optional<Failure> failure_;
  std::string silence_reason_;  // possible reason why nothing was reported
  // While running: time until the symptoms end the gang. While ending: time until SIGKILL.
  Loop::Subscription grace_;
  std::chrono::milliseconds grace_length_{0};
  bool ended_by_signal_ = false;  // a signal ended a rank; the sender may end the executor, too
  bool executor_leaves_soon_ = false;  // CancelReason::kLeavingSoon
  bool looks_for_leftovers_ = false;
  Loop::Subscription stall_;
  Loop::Subscription laggards_;
  Loop::Subscription next_check_;  // of waiting ranks
  Loop::Subscription unexplained_;
};

}  // namespace attune::gang
