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
#include "executor/gang/spec.h"
#include "executor/logs/log_limit.h"
#include "executor/logs/log_reports.h"
#include "executor/processes/cgroup.h"
#include "executor/processes/environment.h"
#include "executor/processes/guard.h"
#include "executor/processes/held_port.h"
#include "executor/processes/loop.h"
#include "system/spawn.h"
#include "system/unique_fd.h"

namespace attune::gang {

// Why a gang is ended from outside. "With a grace": its processes have GangSpec::grace to leave.
enum class CancelReason {
  kUnwanted,         // ends as kCancelled, with a grace
  kFailedElsewhere,  // a part of it on another host has failed: ends as kCancelled
  kLeaving,          // with its executor: ends as kFailed with FailureKind::kLease, with a grace
  kLeaseLost,        // ends as kFailed with FailureKind::kLease
  // Its executor is about to leave, and has asked it to save and leave before: ends as by kLeaving
  // once a rank is ended by SIGTERM or SIGKILL, and by itself otherwise.
  kSoon,
};

struct GangTiming {
  // From a rank's own `error` to the teardown, for it to leave by itself.
  std::chrono::milliseconds failure_grace{100};
  // From its end by SIGTERM or SIGKILL, for the executor to be told to leave as well: where a batch
  // system signals all processes of a job at once.
  std::chrono::milliseconds leave_grace{0};
  // The same from the `error` of a victim, while no cause has shown itself: an interpreter that
  // leaves closes its sockets long before it is gone.
  std::chrono::milliseconds victim_grace{900};
  // The same while a rank says that it leaves: for its exit status, which may name the cause.
  std::chrono::milliseconds leaving_grace{10'000};
  // How long ranks may go on, saying nothing, after the first has finished; the stall timeout if
  // that is longer.
  std::chrono::milliseconds finish_timeout{30'000};
  // From when rank 0 has left as a verdict told it, for the others to leave as well.
  std::chrono::milliseconds follow_timeout{5'000};
  // From when the program below a rank's process that spoke for the rank has left, for another one
  // to join: a wrapper may run several, one after another.
  std::chrono::milliseconds successor_grace{3'000};
  // For a launcher to say how a rank of it has ended: one that takes longer hangs.
  std::chrono::milliseconds explain_timeout{10'000};
};

// All ranks of an attempt on this host, as one thing: started together, told the same, and torn
// down together when one fails.
//
// Its life: Start(), then facts until Ended, then `gone`. Used on the loop's thread only.
class Gang final : private Rank::Owner {
 public:
  struct Services {
    Loop& loop;
    Guard& guard;
    GangTiming timing;
    // For the ranks and all that they start; null: there are none.
    std::function<std::unique_ptr<Cgroup>()> cgroup;
    // A path for a socket that nobody has had before; null or an empty path: there are none.
    std::function<std::filesystem::path()> socket_path;
    // A launcher for the program, if it can have one.
    std::function<Result<WarmStart>(const LaunchedProgram& program)> launcher_for;
    FactSink facts;
    // Whether there is room for more facts now; null: always.
    std::function<bool()> may_read;
    std::function<void(std::filesystem::path)> discard;  // as Supervisor::Options has it
    uint64_t log_bytes_max = 0;                          // the same
    // Whether a child of this process is a guard, a launcher, or a rank of some gang; whether some
    // other gang runs.
    std::function<bool(pid_t)> is_known;
    std::function<bool(const AttemptId&)> others_run;
    // Called after Ended; the gang may be destroyed once that call has returned.
    std::function<void(const AttemptId&)> gone;
  };

  Gang(const Services& services, GangSpec spec);

  void Start();
  void Cancel(CancelReason reason);

  // Hands rank 0 the verdict once it waits at its step; once for each step.
  void Tell(const Verdict& verdict);

  // Asks rank 0 to wait for a verdict at its next report. Asked again before that verdict, nothing
  // happens.
  void Yield();

  // A rank has done its part, here or on another host: from now on the others are laggards.
  void OnFinished();

  // Tells ranks without rank 0 beside them where it listens; once.
  void Meet(const channel::Rendezvous& rank_zero);

  // There is room for more facts again.
  void ReadOn();

  // Ends the gang, because its files fill the disk.
  void EndForDisk(std::string message) { Fail(FailureKind::kDisk, -1, std::move(message)); }

  // Keeps the logs of its ranks within their limit. Returns how many bytes one of them may still
  // grow by before this is to be called again.
  uint64_t TrimLogs();

  // The launcher that its ranks were forked from; null if they were spawned.
  const Launcher* launcher() const { return launcher_; }

  bool has_rank(pid_t pid) const;

 private:
  enum class Phase { kStarting, kRunning, kEnding, kGone };
  // A rank's ends of its channel and its log.
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

  void On(Rank& rank, const channel::Rendezvous& rendezvous);
  void On(Rank& rank, Report report);
  void On(Rank& rank, Logged logged);
  void On(Rank& rank, CheckpointSaved checkpoint);
  void On(Rank& rank, const channel::Progress& progress);
  void On(Rank& rank, const channel::Heartbeat& heartbeat);
  void On(Rank& rank, const channel::Waiting& waiting);
  void On(Rank& rank, const channel::Leaving& leaving);
  void On(Rank& rank, const channel::ErrorText& error);
  void On(Rank& rank, const channel::Done& done);
  void On(Rank&, const channel::Join&) {}   // the rank has joined already
  void On(Rank&, const channel::Claim&) {}  // and speaks
  void On(Rank&, const channel::Unknown&) {}

  // Starting (gang_start.cc).
  Status PrepareMeeting();
  SharedRendezvous Shared() const;
  EnvironmentChanges EnvironmentOf(const Rank& rank) const;
  void ListenForDescendants(Rank& rank);
  std::optional<Outlets> Open(Rank& rank);  // null: the gang has failed
  void SpawnAll();
  void ForkOne(size_t index);
  void OnForked(size_t index, Result<Child> child);
  FailureKind KindOfUnforked() const;  // of a rank, by what its launcher has become
  void OnUnavailable(size_t index);
  void OnLauncherReport(Rank& rank, std::optional<ExitStatus> status);
  void Attach(Rank& rank, Child child, Rank::Parent parent);
  void AllStarted();
  void RelayRendezvous();

  // Failing and ending (gang_end.cc).
  Symptom& SymptomOf(const Rank& rank);
  std::optional<int> FirstLeft() const;
  void Weigh();
  void ExplainSilence();
  void EndUnlessLeaving(std::optional<Failure> failure);
  void Fail(FailureKind kind, int rank, std::string message);
  void FailToStart(FailureKind kind, int rank, const Error& error);
  void End(Outcome outcome, std::optional<Failure> failure);
  void EndWithGrace(Outcome outcome, std::optional<Failure> failure);
  bool BeginEnd(Outcome outcome, std::optional<Failure> failure);
  void EndGrace();
  // Whether its processes have been asked to leave, and still have time for that.
  bool has_grace() const { return phase_ == Phase::kEnding && grace_; }
  void TerminateLeftovers();
  void KillAll();
  void ConcludeIfGone();
  void Conclude();
  uint64_t DiscardUnfinished();
  LogMatch FindInFailure(const Failure& failure) const;

  // Reports and verdicts.
  void Take(Report report);
  bool ReadLog();  // whether all that was printed so far has been read
  void ReadLogOn();
  bool RankZeroWaits(const Report& report) const;
  void DeliverVerdict();
  void SendYield();

  // Watching (gang_watch.cc).
  void EndSilence(Rank& rank);
  void ExcuseThoseAheadOf(const Rank& rank);
  bool SpeaksChannel() const;
  void CheckWait(Rank& rank);
  void CheckWaits();
  Loop::Clock::time_point ExcusedUntil(const Rank& rank) const;
  bool Waits(const Rank& rank) const;
  bool LeavesReportsToRankZero(const Rank& rank) const;
  bool IsWatched(const Rank& rank) const;
  void WatchForStall();
  bool IsOver(const Rank& rank) const;
  void OnRankZeroLeft();
  bool AnyRuns() const;
  void FinishIfAllLeft();
  void WatchForLaggards();
  void Emit(decltype(Fact::what) what);
  Rank* RankZero() const;

  Services services_;
  GangSpec spec_;
  Preparation preparation_;
  std::optional<HeldPort> port_;             // none where rank 0 is on another host
  std::unique_ptr<LogReports> log_reports_;  // null: reports come over the channel
  std::vector<LogLimit> log_limits_;         // by rank of this host; none: there is no limit
  std::unique_ptr<Cgroup> cgroup_;
  Leftovers leftovers_;
  Launcher* launcher_ = nullptr;
  bool built_on_sdk_ = false;
  std::vector<std::unique_ptr<Rank>> ranks_;
  Phase phase_ = Phase::kStarting;
  pid_t group_ = 0;
  int forks_pending_ = 0;

  std::optional<channel::Rendezvous> rendezvous_;
  std::vector<int> stepped_;  // ranks that have finished their first step
  int64_t last_step_;
  bool reported_ = false;
  int64_t logged_ = 0;  // how often rank 0 has logged something
  int64_t milestone_;
  std::optional<int64_t> waiting_at_;  // rank 0 waits for the verdict on this step
  std::optional<Verdict> verdict_;     // not yet delivered
  int64_t delivered_step_ = 0;
  bool yielding_ = false;  // asked to since the last verdict
  bool leaves_ = false;    // rank 0 was told to
  Action leaves_action_ = Action::kStop;
  // When the gang started, or the last verdict went out.
  Loop::Clock::time_point resumed_at_;
  std::optional<Loop::Clock::time_point> first_finish_;
  bool laggards_are_ended_ = false;  // rank 0 has left as it was told to

  std::vector<Symptom> symptoms_;
  Outcome outcome_ = Outcome::kFinished;
  std::optional<Failure> failure_;  // known when the end began; otherwise told by symptoms_
  std::string silence_;             // why nothing may have been reported
  // While it runs: until it ends because of its symptoms. While it ends: until SIGKILL.
  Loop::Subscription grace_;
  std::chrono::milliseconds grace_length_{0};
  bool signalled_ = false;  // by somebody who may be about to end the executor as well
  bool soon_ = false;       // CancelReason::kSoon
  bool looks_for_leftovers_ = false;
  Loop::Subscription stall_;
  Loop::Subscription laggards_;
  Loop::Subscription next_check_;  // of ranks that wait
  Loop::Subscription unexplained_;
};

}  // namespace attune::gang
