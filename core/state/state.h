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

// How a trial stands to stop.plateau.
struct Standstill {
  double best = std::numeric_limits<double>::quiet_NaN();  // the last that was better by min_delta
  Step best_step{0};
  int since_best = 0;         // reports
  std::deque<double> values;  // of the last `patience` reports, where their deviation is asked for
};

// The run of a trial that holds slots now, or that somebody outside asked for.
struct Attempt {
  AttemptId id;
  Epoch epoch;
  AttemptState state = AttemptState::kAssigned;
  bool stepped = false;         // every rank has finished its first optimizer step
  std::vector<RankSlot> ranks;  // none: the sweep has no program
  std::set<std::string> gone;   // executors whose part of the gang has ended
  // How the part ended that the gang falls with (Fall()). kFinished: none has.
  Outcome fell = Outcome::kFinished;
  Failure failure;
  std::optional<Rendezvous> rendezvous;  // of a gang over several executors
  std::optional<CheckpointRef> resume;
  Time decided;
  Seconds seconds{0};  // trained, by its newest report
  int64_t logged = 0;  // MetricsLogged::number of its newest
  Seconds lease{0};    // 0: it is an executor's
  Time lease_until;    // it is lost then

  // What rank 0 is told: go on to the trial's milestone, or leave at the step it waits at.
  VerdictKind verdict = VerdictKind::kContinue;
  Step verdict_step{0};   // of the report it answers; 0: none was judged yet
  Step unwaited_step{0};  // of its newest report, if rank 0 did not wait there; else 0

  // Whether rank 0 is to leave and did not wait for that verdict, so that it hears it only when it
  // waits next. So it is after a restored backup: the log has lost that rank 0 was told to go on.
  bool HasUnheardVerdict() const {
    return verdict != VerdictKind::kContinue && unwaited_step == verdict_step;
  }
  // Whether a part of the gang holds slots on this executor.
  bool Holds(const std::string& executor) const;
  // Whether one does on another.
  bool HoldsBeside(const std::string& executor) const;
  // Whether its ranks are on several executors.
  bool Spans() const;
  // Whether rank 0 has left as it was told to, and so has all that ran beside it.
  bool RankZeroHasLeft() const;

  // A part has ended so. The gang falls with the first that did not finish, unless that one is a
  // victim, which lost a peer, and a later one was lost or has failed by itself.
  void Fall(Outcome outcome, const Failure& why);
};

struct Trial {
  TrialId id;
  Config config;
  TrialState state = TrialState::kPending;
  uint32_t attempts = 0;
  uint32_t earlier_attempts = 0;  // of those, before it began anew
  int failures = 0;               // attempts that failed by the trial's own doing
  bool filled_disk = false;       // an attempt was ended because its files filled a disk
  // Executors that it does not go back to where others have room, as those processes that they
  // were.
  std::map<std::string, Incarnation> avoided;
  Step last_step{0};         // of its newest report
  Step milestone{0};         // the step of the next decision; 0: none
  Step until{0};             // goes on to here, unjudged; 0: as any trial
  bool requested = false;    // by a person: it runs even when the sweep starts nothing itself
  bool held = false;         // paused with its sweep, not by the scheduler
  Time not_before;           // its next attempt
  Seconds seconds{0};        // trained in attempts that have ended
  std::vector<double> best;  // finite value of each objective, whatever the constraints; NaN: none
  int since_best = 0;        // reports since one of them
  Standstill standstill;
  std::optional<Verdict> yield;  // what it gets at the next report that waits

  std::vector<KeptCheckpoint> checkpoints;  // as they were saved
  // Another's checkpoint, from which it goes on until it has saved one of its own.
  std::optional<CheckpointId> donor;
  std::optional<KeptCheckpoint> cloned;

  std::optional<Attempt> live;  // until its end is reported

  // Whether it can go on from one of its own: saved since it began anew, and reported. A report
  // comes after the checkpoint of its step: without it, its history would have a gap.
  bool MayGoOnFrom(const KeptCheckpoint& own) const {
    return own.attempt > earlier_attempts && !own.unreported;
  }
  // The newest of those; null: there is none.
  const KeptCheckpoint* Newest() const;
  // What its next attempt goes on from; null: from the beginning.
  const KeptCheckpoint* Source() const { return cloned ? &*cloned : Newest(); }
};

// A proposal that the searcher thinks about.
struct BegunProposal {
  ProposalNumber proposal;
  EventSeq position;     // of its ProposalBegun
  std::string searcher;  // as it was saved then
};

// Failures of a sweep's attempts by their own doing, as long as nothing was reported.
struct EarlyFailures {
  int count = 0;
  std::set<TrialNumber> trials;
  std::set<std::string> executors;

  void Note(TrialNumber trial, const Failure& failure);
};

// What gangs occupy, or could.
struct Occupied {
  int cpus = 0;
  int64_t gpu_percent = 0;  // 25: a quarter of a GPU
  int64_t memory_bytes = 0;
};

struct Sweep {
  SweepId id;
  SweepSpec spec;
  std::string idempotency_key;
  std::string owner;  // a token by name: sweeps of one owner share what is the owner's
  SweepState state = SweepState::kRunning;
  std::optional<SweepState> stopping_as;  // no new trials; how it will have ended
  std::string reason;
  bool exhausted = false;  // the searcher has no more
  std::optional<BegunProposal> thinking;
  bool search_waits = false;  // it has thought in vain, and nothing has happened since
  bool reported = false;      // some trial has reported something
  bool finite = false;        // some report had a finite value of each metric
  EarlyFailures early_failures;
  std::unique_ptr<Searcher> searcher;
  std::unique_ptr<Scheduler> scheduler;

  // Those that something can still happen to. A trial leaves when it has ended, its slots are free
  // and each of its checkpoints stays for good.
  std::map<TrialNumber, Trial> trials;

  int created = 0;                  // trials so far
  int points_used = 0;              // of spec.initial_points
  ProposalNumber next_proposal{0};  // that the searcher is asked for
  std::set<TrialNumber> pending;    // trials that wait for an attempt
  // Of those, the ones that were to wait for a while, with until when.
  std::set<std::pair<Time, TrialNumber>> delayed;
  std::set<TrialNumber> live;                     // whose attempt holds slots
  std::set<std::pair<Time, TrialNumber>> leases;  // of asked attempts, by when they run out
  std::set<std::pair<Time, TrialNumber>> small;   // gangs below `workers`, by when they may grow
  std::set<TrialNumber> surplus;                  // with a checkpoint that nothing keeps
  std::set<TrialNumber> clones;                   // that go on from a donor's checkpoint
  std::map<TrialNumber, Step> paused;             // that can be promoted, with their steps
  std::set<CheckpointId> retained;                // by the scheduler
  std::map<std::string, TrialNumber> by_key;      // idempotency keys of requests for trials
  // Executors that its failure.on_log has excluded, as those processes that they were.
  std::map<std::string, Incarnation> excluded;
  Occupied used;                  // by gangs
  std::array<int, 7> by_state{};  // trials, indexed by TrialState
  Front front;                    // its best reports
  std::optional<Best> reached;    // the first report that has reached the targets
  EventSeq edited{0};             // the newest event that changed the specification
  int since_best = 0;             // trials off the front that ended since it changed
  Time running_since;             // meaningful while it is not paused
  int64_t ran_us = 0;             // before that
  double gpu_seconds = 0;         // of attempts that have ended
  // The longest a gang has trained of late from one report to its next, or to its first.
  Seconds report_gap{0};

  int Count(TrialState which) const { return by_state[static_cast<size_t>(which)]; }
  Trial* Find(TrialNumber number);  // null when it has left
  const Trial* Find(TrialNumber number) const;
  const KeptCheckpoint* Find(
      const CheckpointId& checkpoint) const;  // null when it has been dropped
};

// A sweep that has ended and can be opened again.
struct EndedSweep {
  SweepState state = SweepState::kCompleted;
  std::string idempotency_key;
  uint64_t mark = 0;  // of what is left of it (core/state/ended.h)
  // That; empty where it lies beside the snapshots. No part of what is saved.
  std::string saved;
  std::map<CheckpointId, bool> pins;  // since then: whether they are
  std::set<CheckpointId> dropped;     // since then
};

// How many ended sweeps can be opened again, and are known by their idempotency keys: the ones that
// ended last.
inline constexpr size_t kReopenableSweeps = 256;

// Nothing more starts on an executor, as a person has decided.
struct Drain {
  Time since;
  std::string reason;  // empty: none was given
  bool now = false;    // what runs there is to go on elsewhere
};

// Nothing more starts on an executor for a while, since its gangs keep failing.
struct Quarantine {
  Time until;
  std::string reason;
};

struct Executor {
  std::string name;
  std::string instance;
  Incarnation incarnation;
  std::string address;
  std::string folder;  // of its checkpoints (ExecutorJoined)
  bool lost = false;
  Time lost_at;
  std::optional<Drain> drain;  // of whatever process has the name
  std::string problem;         // that it says it has itself (ExecutorHealth)
  std::optional<Quarantine> quarantine;
  Luck luck;
  Host host;                          // what is free of it
  std::map<Epoch, TrialId> attempts;  // that hold slots here
};

// From so long before the end of an executor on, nothing should train there: it is told to leave,
// and saving takes its time.
inline constexpr Seconds kLeaveBefore{60};

// How long a gang of the sweep has to run to be worth its start: to its next report, the checkpoint
// of that, and the leave. In few steps, so that there are few kinds of gangs.
Seconds NeedsOf(const Sweep& sweep);

// Whether a gang can be placed on it, while it can be reached.
inline bool TakesGangs(const Executor& executor) {
  return !executor.lost && !executor.drain && executor.problem.empty() && !executor.quarantine;
}

// Whether the checkpoint is in the data folder of the executor, as far as that is known.
bool LiesOn(const KeptCheckpoint& kept, const Executor& executor);

// What stands for the data folder that an executor keeps its files in: what it says, or its name.
inline const std::string& FolderOf(const std::string& name, const std::string& folder) {
  return folder.empty() ? name : folder;
}
inline const std::string& FolderOf(const Executor& executor) {
  return FolderOf(executor.name, executor.folder);
}

// Why nothing starts on one that is not lost: "drained"; empty: something may.
std::string WhyClosed(const Executor& executor);

// Whether it is forgotten in time. One that is drained is kept, so that it is still drained when it
// comes back.
inline bool Forgettable(const Executor& executor) { return executor.lost && !executor.drain; }

// The slots that are kept for a gang too large for what is free now.
struct Reservation {
  SweepId sweep;
  std::map<std::string, int> workers;  // for how many of its ranks, by executor
  Epoch since;  // attempts of later epochs on those executors run in the gang's shade
};

// What has changed since somebody looked last, so that only that is looked at again. No part of
// what is saved: of a state that was loaded or replayed all of it counts as changed.
struct Touched {
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

// The number of them that is known. A record is read and used within fewer, or is read again.
inline constexpr size_t kRecordChanges = 256;

// A part of the log that has an identity of its own: from one LogIdentified to the next.
struct LogPart {
  LogIdentity identity;
  EventSeq begin;      // its first event
  Time began;          // when the log got the identity
  SweepId last_sweep;  // the last sweep of the parts before it
  Epoch last_epoch;    // attempts with larger epochs were assigned in it, or later
};

// Everything the brain knows. Changed by Apply only; replaying the log rebuilds it.
struct State {
  // `known` outlives the state.
  explicit State(const Algorithms& known) : algorithms(&known) {}

  const Algorithms* algorithms;
  std::map<SweepId, Sweep> sweeps;        // that have not ended
  std::map<SweepId, EndedSweep> ended;    // that can be opened again
  std::deque<SweepId> reopenable;         // the same, by when they ended
  std::map<std::string, SweepId> by_key;  // idempotency keys of both
  std::map<std::string, Executor> executors;
  std::map<std::string, std::set<std::string>> folders;  // whose, of executors that are not lost
  std::set<std::string> ending;                          // executors that have only so much time
  std::optional<Reservation> reservation;
  // Checkpoints whose files are to go, by the executor that holds them, with their paths.
  std::map<std::string, std::map<CheckpointId, std::string>> removals;
  std::set<SweepId> deleted;
  // Deleted sweeps whose files are to go, by the data folder that may have some (FolderOf).
  std::map<std::string, std::set<SweepId>> sweep_removals;
  std::deque<RecordChange> changes;  // in order: every one after `changes_after`
  EventSeq changes_after{0};
  EventSeq last_seq{0};
  Time last_time;
  int64_t clock_offset_us = 0;  // from the time of the log to the time that people see
  SweepId last_sweep{0};
  Epoch last_epoch{0};
  Incarnation last_incarnation{0};
  std::vector<LogPart> parts;  // in order; the first one covers all that came before it
  Touched touched;

  const Sweep* Find(SweepId id) const;  // null when it has ended
  const Trial* Find(const TrialId& id) const;
};

// The identity of the log now, and when the sweep was created. 0: it has none.
LogIdentity IdentityOf(const State& state);
LogIdentity IdentityOf(const State& state, SweepId sweep);

// Whether the attempt began before the newest restored backup.
bool IsOlderThanRestore(const State& state, Epoch epoch);

// A time of the log as people see it.
inline Time ShownTime(const State& state, Time time) {
  return Time{time.us + state.clock_offset_us};
}

// What the failure is by the sweep's failure.on_log; null: nothing was found in a log.
const LogPolicy* PolicyOn(const FailurePolicy& policies, const Failure& failure);

// Whether the failure tells something of the host that it happened on.
bool BlamesHost(const Failure& failure);

// Whether the failure is one of a trial that filled a disk for the first time, as far as is known.
bool FillsDiskFirst(const Trial& trial, const Failure& failure);

// Whether the trial pays for the failure with one of its restarts. It does not pay for what a host
// lacks, the first time that it fills a disk, and what failure.on_log says goes on elsewhere,
// unless that happens a second time on the same host.
bool Counts(const SweepSpec& spec, const Trial& trial, const Failure& failure);

// The executors that gangs of the sweep do not go to; and those that this trial's does not while
// others have room.
std::set<std::string> ExcludedFrom(const State& state, const Sweep& sweep);
std::set<std::string> AvoidedBy(const State& state, const Trial& trial);

// Whether its executors should run this trial's live attempt (to its end, or to the step at which
// it leaves). REQUIRES: trial.live.
bool Wanted(const Trial& trial);

// When the attempt may give way to one with more workers; null: it has all of them, or no ranks.
std::optional<Time> MayGrowFrom(const SweepSpec& spec, const Attempt& attempt);

// Every attempt that holds slots on an executor and that it should run, in order of epoch; and
// those that it should not.
std::vector<const Trial*> WantedOn(const State& state, const std::string& executor);
std::vector<const Trial*> UnwantedOn(const State& state, const std::string& executor);

// The step at which this trial is complete; 0: its program ends itself.
Step LastStep(const Sweep& sweep, const Trial& trial);

// The seed a trial's ranks get, below 2^53; the same for every attempt.
uint64_t SeedOf(const SweepSpec& spec, TrialNumber trial);

// Changes the state by one event. Cannot fail: events were checked before they were written.
// REQUIRES: event.seq follows state.last_seq, or all events between them were erased.
void Apply(State& state, const Event& event);

}  // namespace attune
