#pragma once

#include <array>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "core/log/event.h"
#include "core/space/front.h"
#include "core/state/placement.h"

namespace attune {

// A trial's recent reports, as far as stop.plateau needs them.
struct PlateauState {
  // The last value that was better than the one before by more than min_delta.
  double best = std::numeric_limits<double>::quiet_NaN();
  Step best_step{0};
  int since_best = 0;         // reports since best_step
  std::deque<double> values;  // of the last `patience` reports, if stop.plateau.std is set
};

// A run of a trial, by a gang that holds slots or by a client that asked for the trial.
struct Attempt {
  AttemptId id;
  Epoch epoch;
  AttemptState state = AttemptState::kAssigned;
  bool stepped = false;               // every rank has finished its first optimizer step
  std::vector<RankSlot> ranks;        // none: the sweep has no program
  std::set<std::string> ended_parts;  // executors whose part of the gang has ended
  // The outcome and the failure that ended parts give the whole gang (NotePartEnd). kFinished: no
  // part has failed.
  Outcome part_outcome = Outcome::kFinished;
  Failure failure;
  std::optional<Rendezvous> rendezvous;  // of a gang over several executors
  std::optional<CheckpointRef> resume;
  Time assigned_at;    // when it was assigned
  Seconds seconds{0};  // training time according to its newest report
  int64_t logged = 0;  // the newest MetricsLogged::number
  Seconds lease{0};    // of the client, for an attempt without ranks; else 0
  Time lease_until;    // when that lease ends; the attempt is lost then

  // The order for rank 0: continue to the trial's milestone, or leave at the step where it waits.
  VerdictKind verdict = VerdictKind::kContinue;
  Step verdict_step{0};   // the step of the report that it answers; 0: none was judged yet
  Step unwaited_step{0};  // the step of its newest report if rank 0 did not wait there; else 0

  // Whether rank 0 must leave but did not wait for that verdict. Then it receives the verdict when
  // it waits next. This happens after a backup was restored: the log has lost an earlier kContinue.
  bool HasUndeliveredVerdict() const {
    return verdict != VerdictKind::kContinue && unwaited_step == verdict_step;
  }
  // Whether a part of the gang holds slots on this executor.
  bool HoldsSlotsOn(const std::string& executor) const;
  // Whether a part of the gang holds slots on another executor.
  bool HoldsSlotsElsewhere(const std::string& executor) const;
  // Whether its ranks are on several executors.
  bool SpansExecutors() const;
  // Whether rank 0, and so every rank on its executor, has left after it was told to leave.
  bool RankZeroHasLeft() const;

  // Records the end of a part. The first part that did not finish determines the outcome of the
  // gang. A failure that was caused by the loss of a peer gives way to a later failure that was
  // not.
  void NotePartEnd(Outcome outcome, const Failure& why);
};

struct Trial {
  TrialId id;
  Config config;
  std::optional<Boxed<TrialPatch>> patch;
  TrialState state = TrialState::kPending;
  uint32_t attempts = 0;
  uint32_t earlier_attempts = 0;  // attempts before it last began from the start
  int failures = 0;               // failures that count as restarts (CountsAsRestart)
  bool filled_disk = false;       // an attempt was ended because its files filled a disk
  // Executors that it avoids if others have room. An entry applies only to that process of the
  // executor.
  std::map<std::string, Incarnation> avoided;
  Step last_step{0};               // of its newest report
  Step milestone{0};               // the step of the next decision; 0: none
  Step until{0};                   // continues to this step without a scheduler; 0: as usual
  bool requested = false;          // by a user: it runs even if the sweep starts no more trials
  bool paused_with_sweep = false;  // the pause comes from its sweep, not from the scheduler
  Time not_before;                 // its next attempt does not start earlier
  Seconds seconds{0};              // training time of attempts that have ended
  std::vector<double> best;  // best finite value of each objective, without constraints; NaN: none
  int since_best = 0;        // reports since one of these improved
  PlateauState plateau_state;
  std::optional<Verdict> yield_verdict;  // the verdict for its next report that waits

  std::vector<KeptCheckpoint> checkpoints;  // in the order in which they were saved
  // The checkpoint of another trial that it resumes from until it has saved a checkpoint itself.
  std::optional<CheckpointId> donor;
  std::optional<KeptCheckpoint> cloned;

  std::optional<Attempt> live;  // until the end of the attempt is reported

  // Whether it can resume from this checkpoint, which it saved itself. The checkpoint must be newer
  // than the last start from the beginning, and its step must be reported. A report arrives after
  // the checkpoint of its step, so without this rule the history could lack a report.
  bool CanResumeFrom(const KeptCheckpoint& own) const {
    return own.attempt > earlier_attempts && !own.unreported;
  }
  // The newest checkpoint that it can resume from; null: none.
  const KeptCheckpoint* NewestCheckpoint() const;
  KeptCheckpoint* Find(uint32_t attempt, Step step);  // null if it was dropped
  // The checkpoint from which its next attempt resumes; null: it begins from the start.
  const KeptCheckpoint* ResumeCheckpoint() const { return cloned ? &*cloned : NewestCheckpoint(); }
};

// A proposal that the searcher is computing.
struct BegunProposal {
  ProposalNumber proposal;
  EventSeq position;     // of its ProposalBegun
  std::string searcher;  // the searcher, saved at this position
};

// Failures of a sweep's attempts before the first report. They count as restarts (CountsAsRestart).
struct EarlyFailures {
  int count = 0;
  std::set<TrialNumber> trials;
  std::set<std::string> executors;

  void Note(TrialNumber trial, const Failure& failure);
};

// Resources that gangs occupy, or could occupy.
struct Occupied {
  int cpus = 0;
  int64_t gpu_percent = 0;  // 25: a quarter of a GPU
  int64_t memory_bytes = 0;
};

struct Sweep {
  SweepId id;
  SweepSpec spec;
  std::string idempotency_key;
  std::string owner;  // the name of a token; resources are shared fairly between owners
  SweepState state = SweepState::kRunning;
  std::optional<SweepState> stopping_as;  // set: no new trials start, and the sweep ends as this
  std::string reason;
  bool exhausted = false;  // the searcher has no further configuration
  std::optional<BegunProposal> thinking;
  bool search_waits = false;  // the searcher's last answer was Wait, and no event has come since
  bool reported = false;      // some trial has reported
  bool finite = false;        // some report had finite values for all objectives
  EarlyFailures early_failures;
  // The executors that could not install the packages of the program, with the time of the first
  // failure.
  std::map<std::string, Time> failed_builds;
  // The newest record of the environment on each executor, as ContentHash.
  std::map<std::string, uint64_t> environments;
  std::unique_ptr<Searcher> searcher;
  std::unique_ptr<Scheduler> scheduler;

  // The trials that can still change. A trial leaves this map when it is settled (IsSettled in
  // core/state/retention.h).
  std::map<TrialNumber, Trial> trials;

  int created = 0;                  // number of trials so far
  int points_used = 0;              // how many of spec.initial_points were tried
  ProposalNumber next_proposal{0};  // the next number to ask the searcher for
  std::set<TrialNumber> pending;    // trials that wait for an attempt
  // The pending trials that must wait, with the time until which they wait.
  std::set<std::pair<Time, TrialNumber>> delayed;
  std::set<TrialNumber> live;                     // trials with a live attempt
  std::set<std::pair<Time, TrialNumber>> leases;  // of attempts without ranks, by their ends
  std::set<std::pair<Time, TrialNumber>> small;   // gangs below `workers`, by when they may grow
  std::set<TrialNumber> surplus;                  // trials with a checkpoint that nothing keeps
  std::set<TrialNumber> clones;                   // trials that resume from a donor's checkpoint
  std::map<TrialNumber, Step> paused;             // trials that can be promoted, with their steps
  std::set<CheckpointId> retained;                // checkpoints that the scheduler retains
  std::map<std::string, TrialNumber> by_key;      // idempotency keys of requests for trials
  // Executors that its failure.on_log has excluded. An entry applies only to that process of the
  // executor.
  std::map<std::string, Incarnation> excluded;
  Occupied used;                  // by its gangs
  std::array<int, 7> by_state{};  // numbers of trials, indexed by TrialState
  Front front;                    // its best reports
  std::optional<Best> reached;    // the first report that reached the targets
  EventSeq edited{0};             // the newest event that changed the specification
  int since_best = 0;             // trials that ended without a place in the front since it changed
  Time running_since;             // the start of the current period of running
  int64_t ran_us = 0;             // running time before that period
  double gpu_seconds = 0;         // of attempts that have ended
  // The longest recent training time between two reports of a gang, or before its first one.
  Seconds report_gap{0};

  int Count(TrialState which) const { return by_state[static_cast<size_t>(which)]; }
  Trial* Find(TrialNumber number);  // null if the trial has left
  const Trial* Find(TrialNumber number) const;
  const KeptCheckpoint* Find(const CheckpointId& checkpoint) const;  // null if it was dropped
};

// A sweep that has ended and can be opened again.
struct EndedSweep {
  SweepState state = SweepState::kCompleted;
  std::string idempotency_key;
  uint64_t mark = 0;  // of its saved bytes (core/state/ended.h)
  // These bytes; empty if only the store has them. Snapshots do not include them.
  std::string saved;
  std::map<CheckpointId, bool> pins;  // checkpoints pinned (true) or unpinned since its end
  std::set<CheckpointId> dropped;     // checkpoints dropped since its end
  std::map<CheckpointId, std::string> stored;  // KeptCheckpoint::stored that changed since its end
};

// The deletion of a sweep that is scheduled (SweepDeletionScheduled).
struct ScheduledDeletion {
  Time at;
  std::string requester;  // the name of a token
};

// How many ended sweeps can be opened again and are found by their idempotency keys: those that
// ended last.
inline constexpr size_t kReopenableSweeps = 256;

// A user drains an executor: nothing more starts there.
struct Drain {
  Time since;
  std::string reason;  // empty: none was given
  bool now = false;    // running trials must move to other executors
};

// Nothing more starts on an executor for a while, because its gangs keep failing.
struct Quarantine {
  Time until;
  std::string reason;
};

struct Executor {
  std::string name;
  std::string instance;
  Incarnation incarnation;
  std::string address;
  std::string folder;  // the identity of its data folder (ExecutorJoined)
  bool lost = false;
  Time lost_at;
  std::optional<Drain> drain;  // a restart of its process does not change this
  std::string problem;         // the problem that it reported (ExecutorHealth)
  std::optional<Quarantine> quarantine;
  GangHistory gang_history;
  Host host;                          // its resources
  std::map<Epoch, TrialId> attempts;  // attempts that hold slots here
};

// Trials must leave an executor this long before its end, because saving a checkpoint takes time.
inline constexpr Seconds kLeaveBefore{60};

// The shortest time for which it is worth starting a gang of the sweep: until its next report, plus
// kLeaveBefore. It is rounded up to few distinct values, to keep the number of kinds of gangs
// small.
Seconds MinRuntimeOf(const Sweep& sweep);

// Whether gangs can be placed on the executor when it is reachable.
inline bool TakesGangs(const Executor& executor) {
  return !executor.lost && !executor.drain && executor.problem.empty() && !executor.quarantine;
}

// Whether the checkpoint is in the data folder of the executor, as far as is known.
bool IsStoredOn(const KeptCheckpoint& kept, const Executor& executor);

// Identifies the data folder of an executor: the identity that it reported, or else its name.
inline const std::string& FolderOf(const std::string& name, const std::string& folder) {
  return folder.empty() ? name : folder;
}
inline const std::string& FolderOf(const Executor& executor) {
  return FolderOf(executor.name, executor.folder);
}

// Why nothing starts on an executor that is not lost: "drained"; empty: gangs can start there.
std::string WhyClosed(const Executor& executor);

// Whether the executor can be forgotten after a while. A drained one is kept, so that it is still
// drained when it comes back.
inline bool CanBeForgotten(const Executor& executor) { return executor.lost && !executor.drain; }

// Slots that are kept for a gang that does not fit now.
struct Reservation {
  SweepId sweep;
  std::map<std::string, int> workers;  // by executor: for how many of its ranks
  Epoch since;  // attempts with later epochs use only resources that the gang leaves free
};

// What has changed in the state since the agenda was last updated. Snapshots do not include this:
// after a load or a replay, everything counts as changed.
struct ChangedParts {
  bool all = true;
  std::set<SweepId> sweeps;
  std::set<std::string> executors;
  bool reservation = false;
};

// The newest change to the record of a trial that has ended.
struct RecordChange {
  TrialId trial;
  EventSeq seq;
};

// How many changes the state remembers. If more happen between reading a record and using it, the
// record counts as out of date.
inline constexpr size_t kRecordChanges = 256;

// The part of the log from one LogIdentified to the next. It has its own identity.
struct LogPart {
  LogIdentity identity;
  EventSeq begin;      // its first event
  Time began;          // when the log got the identity
  SweepId last_sweep;  // the last sweep of the parts before it
  Epoch last_epoch;    // attempts with larger epochs were assigned in it, or later
};

// Everything that the brain knows. Only Apply changes it, and replaying the log rebuilds it.
struct State {
  // REQUIRES: `known` outlives the state.
  explicit State(const Algorithms& known) : algorithms(&known) {}

  const Algorithms* algorithms;
  std::map<SweepId, Sweep> sweeps;        // sweeps that have not ended
  std::map<SweepId, EndedSweep> ended;    // ended sweeps that can be opened again
  std::deque<SweepId> reopenable;         // the same, by when they ended
  std::map<std::string, SweepId> by_key;  // idempotency keys of both
  std::map<std::string, Executor> executors;
  std::map<std::string, std::set<std::string>> folders;  // by folder: executors that are not lost
  std::set<std::string> ending;                          // executors with a limited lifetime
  std::optional<Reservation> reservation;
  // Checkpoints whose files must be deleted, by the executor that has them, with their paths.
  std::map<std::string, std::map<CheckpointId, std::string>> removals;
  std::map<SweepId, ScheduledDeletion> deletions;
  std::set<SweepId> deleted;
  // Deleted sweeps whose files must be deleted, by data folder (FolderOf).
  std::map<std::string, std::set<SweepId>> sweep_removals;
  std::deque<RecordChange> changes;  // all changes after `changes_after`, in order
  EventSeq changes_after{0};
  EventSeq last_seq{0};
  Time last_time;
  int64_t clock_offset_us = 0;  // from the time of the log to the time that people see
  SweepId last_sweep{0};
  Epoch last_epoch{0};
  Incarnation last_incarnation{0};
  std::vector<LogPart> parts;  // in order; the first one covers all that came before it
  ChangedParts changed_parts;

  const Sweep* Find(SweepId id) const;  // null if it has ended
  const Trial* Find(const TrialId& id) const;
};

// The identity of the log now, or when the sweep was created. 0: the log had none.
LogIdentity IdentityOf(const State& state);
LogIdentity IdentityOf(const State& state, SweepId sweep);

// Whether the attempt began before the newest restored backup.
bool IsOlderThanRestore(const State& state, Epoch epoch);

// A time of the log as people see it.
inline Time ShownTime(const State& state, Time time) {
  return Time{time.us + state.clock_offset_us};
}

// The policy of failure.on_log that applies to the failure; null: no pattern matched.
const LogPolicy* FindLogPolicy(const FailurePolicy& policies, const Failure& failure);

// Whether the host may be the cause of the failure.
bool BlamesHost(const Failure& failure);

// Whether the trial filled a disk for the first time, as far as is known.
bool IsFirstFullDisk(const Trial& trial, const Failure& failure);

// Whether the failure uses up one of the trial's restarts. Exceptions are failures that the host
// caused, the first time that the trial filled a disk, and failures after which failure.on_log
// moves the trial to another host, unless they happen on the same host again.
bool CountsAsRestart(const SweepSpec& spec, const Trial& trial, const Failure& failure);

// The executors that the sweep must not use, and those that this trial avoids if others have room.
std::set<std::string> ExcludedFrom(const State& state, const Sweep& sweep);
std::set<std::string> AvoidedBy(const State& state, const Trial& trial);

// Whether its executors should run this trial's live attempt, to its end or to the step at which it
// leaves. REQUIRES: trial.live.
bool ShouldRun(const Trial& trial);

// When the attempt may be replaced by one with more workers; nullopt if it has all workers or no
// ranks.
std::optional<Time> MayGrowFrom(const SweepSpec& spec, const Attempt& attempt);

// The trials with slots on the executor that it should run, in order of epoch; and those that it
// should not run.
std::vector<const Trial*> TrialsToRunOn(const State& state, const std::string& executor);
std::vector<const Trial*> TrialsToEndOn(const State& state, const std::string& executor);

// The step at which this trial is complete; 0: its program ends by itself.
Step LastStep(const Sweep& sweep, const Trial& trial);

// The digest of the code that the trial runs; empty: it has none.
std::string CodeDigestOf(const SweepSpec& spec, const Trial& trial);

// The seed for the program of a trial, below 2^53; the same for every rank and attempt.
uint64_t SeedOf(const SweepSpec& spec, TrialNumber trial);

// Changes the state by one event. It cannot fail, because events are checked before they are
// written. REQUIRES: event.seq follows state.last_seq, or all events between them were erased.
void Apply(State& state, const Event& event);

}  // namespace attune
