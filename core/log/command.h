#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/log/event.h"
#include "core/log/suggestion.h"

namespace attune {

// Requests to the brain, from users, executors and the server. The brain may refuse a command, or a
// command may change nothing. Only the events that a command causes are kept.

// Creates a sweep. If a sweep with the same non-empty idempotency_key exists, nothing changes.
struct CreateSweep {
  Boxed<SweepSpec> spec;
  std::string source;
  std::string idempotency_key;
  std::string owner{kAdmin};
  // The results to take from each sweep of spec.warm_start, in order (core/brain/warm_start.h).
  std::vector<WarmStart> warm_start = {};
  std::string path = {};  // of the sweep file, absolute; empty: unknown
};

// Starts nothing more. Running trials save a checkpoint and leave.
struct PauseSweep {
  SweepId sweep;
};

struct ResumeSweep {
  SweepId sweep;
};

// Changes the limits that are given. Reopens the sweep if it has ended and is still reopenable.
struct ExtendSweep {
  SweepId sweep;
  std::optional<int> max_trials;  // 0 means no limit, for all of these
  std::optional<Seconds> max_time;
  std::optional<double> max_gpu_hours;
  std::optional<Step> max_step;  // not below the current one
};

// Replaces the specification of a sweep. It may differ only as core/brain/edit.h allows. Initial
// points that were not tried are removed if they lie outside the new ranges. Trials outside the new
// ranges continue. The command is refused if the sweep was edited after `seen`, the newest event
// that the client knows. Reopens the sweep if it has ended and is still reopenable.
struct EditSweep {
  SweepId sweep;
  Boxed<SweepSpec> spec;
  EventSeq seen{0};
};

// Finishes running trials and starts no more.
struct StopSweep {
  SweepId sweep;
};

// Ends every trial now.
struct KillSweep {
  SweepId sweep;
};

// Changes the note or the tags of a sweep, which may have ended.
struct AnnotateSweep {
  SweepId sweep;
  Annotation annotation;
};

// Deletes a sweep that has ended, with its checkpoints and its events. The command is refused if
// the sweep changed after `seen`, the newest event that the client knows. With a delay, the sweep
// is deleted later, and UndeleteSweep can undo this until then. A second command with a delay does
// not change the time; one without a delay deletes the sweep now.
struct DeleteSweep {
  SweepId sweep;
  EventSeq seen{0};
  Seconds delay{0};
};

// Undoes the scheduled deletion of a sweep. Changes nothing if none is scheduled.
struct UndeleteSweep {
  SweepId sweep;
};

// The answer of a searcher that thinks, for the ProposalBegun at `position`. A repeated answer, or
// an answer that the sweep no longer needs, changes nothing.
struct Propose {
  SweepId sweep;
  ProposalNumber proposal;
  EventSeq position;
  Suggestion suggestion;
};

// A configuration from a user, perhaps with a patch of the code. It is tried before any further
// proposal.
struct EnqueueTrial {
  SweepId sweep;
  Config config;
  std::string idempotency_key;
  std::optional<TrialPatch> patch = {};
};

struct KillTrial {
  TrialId trial;
};

// Reopens a trial that has ended. If `until` is 0, the trial is tried again, from its newest
// checkpoint or from the start, and its restarts count from 0. Otherwise the trial continues to
// step `until`, and no scheduler judges it. The command is refused if the record may be out of
// date. If the trial begins from the start, each of its checkpoints is dropped once nothing refers
// to it.
struct ReopenTrial {
  TrialRecord record;
  Step until{0};
  bool from_start = false;
};

// Changes the note or the tags of a trial. The state does not know trials that ended long ago, so
// the caller must check that the trial exists.
struct AnnotateTrial {
  TrialId trial;
  Annotation annotation;
};

// Asks for the next trial of a sweep without a program. The attempt has no ranks. The client sends
// reports and the end of the attempt as RecordFact, with the epoch from the answer.
struct AskTrial {
  SweepId sweep;
  std::string idempotency_key;
  Seconds lease{0};                // see AttemptAssigned
  std::optional<AttemptId> after;  // while this attempt is live, the command does nothing
};

// Pins a checkpoint, so that it stays whatever the sweep's policy is, or unpins it. An unpinned
// checkpoint is dropped if nothing else refers to it, unless its sweep ended too long ago.
struct PinCheckpoint {
  CheckpointId checkpoint;
  bool pinned = true;
};

// Drops a checkpoint that a user no longer wants. `record` is the record of its trial. The command
// is refused while something needs the checkpoint. It is also refused if the trial is no longer in
// the state and the record may be out of date. If the checkpoint is gone already, nothing changes.
struct DropCheckpoint {
  CheckpointId checkpoint;
  TrialRecord record;
};

// Files of a sweep in an executor's data folder. Sweeps of different logs may have the same number,
// so `identity` is the identity that the log had when the sweep was created.
struct SweepFiles {
  SweepId sweep;
  LogIdentity identity;
  bool operator==(const SweepFiles&) const = default;
};

// An executor opened its stream. If `instance` is the same as before, it is the same process.
// Otherwise the earlier process and its gangs are gone.
struct JoinExecutor {
  std::string name;
  std::string instance;
  std::string address;
  Resources resources;
  bool spans = false;  // gangs can have ranks here and elsewhere
  std::string folder;  // identity of its data folder (ExecutorJoined); empty: unknown
  Labels labels;
  Seconds time_left{0};                 // until it has to end; 0: it has no end
  std::vector<SweepFiles> sweeps = {};  // sweeps that have files in its data folder
};

// Nothing more starts on the executor until a user resumes it, even if its process restarts.
// Running trials finish. With `now`, trials that can continue elsewhere save a checkpoint at their
// next report and move.
struct DrainExecutor {
  std::string name;
  std::string reason;  // empty: none, or the reason of an earlier drain
  bool now = false;
};

// Resumes an executor that is drained, quarantined or excluded by a sweep.
struct ResumeExecutor {
  std::string name;
};

// An executor reports its health (ExecutorHealth). Ignored if the incarnation is not the current
// one.
struct ReportHealth {
  std::string name;
  Incarnation incarnation;
  std::string problem;  // empty: the executor is healthy
};

// An executor is about to end. Its trials save a checkpoint at their next report and continue
// elsewhere. Ignored if the incarnation is not the current one.
struct LeaveExecutor {
  std::string name;
  Incarnation incarnation;
};

// An executor's lease has ended. Ignored if the incarnation is not the current one.
struct LoseExecutor {
  std::string name;
  Incarnation incarnation;
  std::string reason;
};

// A message about an attempt, from an executor or from the client that asked for the trial. It
// changes nothing if its epoch is not the attempt's, if the attempt has ended, or if it is a
// repetition.
//
// If a gang spans several executors, the executor of rank 0 reports for all ranks. The others only
// report how their part has ended. An attempt that finished has in `failure.message` why it may
// have reported nothing.
struct RecordFact {
  Epoch epoch;
  std::variant<AttemptRenewed, AttemptStarted, AttemptFirstStep, RendezvousOpened, TrialReported,
               MetricsLogged, CheckpointSaved, AttemptEnded>
      fact;
  std::string executor;  // the sender; empty: the client, or the attempt's only executor
};

// The record of the environment in which an executor runs a sweep (EnvironmentRecorded). Ignored if
// the sweep was deleted. While the sweep runs, a repetition changes nothing.
struct RecordEnvironment {
  SweepId sweep;
  std::string executor;
  std::string record;
};

// The files of a checkpoint are gone. The log may lack its CheckpointDropped after a backup was
// restored. A repetition changes nothing.
struct RecordRemoval {
  CheckpointId checkpoint;
  std::string executor = {};  // the sender
  // The identity of the log that the executor knew. A removal with an earlier identity is ignored,
  // because another checkpoint may have the same name now.
  LogIdentity identity = {};
};

// An object store has a copy of a checkpoint, or no longer has one. A repetition changes nothing.
struct RecordStored {
  CheckpointId checkpoint;
  std::string digest;   // of the checkpoint; another checkpoint may have the same name now
  std::string address;  // of the store; empty: no copy
};

// An executor has removed the files of a deleted sweep from a data folder. A repetition changes
// nothing.
struct RecordSweepRemoval {
  SweepId sweep;
  std::string folder;  // FolderOf(executor)
  std::string executor;
  LogIdentity identity = {};  // as in RecordRemoval
};

// Gives the log an identity, because it has none or because a backup was restored. Changes nothing
// if the identity of the log is not `before`.
struct IdentifyLog {
  LogIdentity before;
  LogIdentity identity;
  std::string reason = {};  // LogIdentified::reason
};

// Sets the offset from the time of the log to the time that people see (ClockAdjusted). A
// repetition changes nothing.
struct AdjustClock {
  int64_t offset_us = 0;
  std::string reason;
};

using Command =
    std::variant<CreateSweep, PauseSweep, ResumeSweep, ExtendSweep, EditSweep, StopSweep, KillSweep,
                 AnnotateSweep, DeleteSweep, UndeleteSweep, Propose, EnqueueTrial, KillTrial,
                 ReopenTrial, AnnotateTrial, AskTrial, PinCheckpoint, DropCheckpoint, JoinExecutor,
                 LoseExecutor, DrainExecutor, ResumeExecutor, LeaveExecutor, ReportHealth,
                 RecordFact, RecordEnvironment, RecordRemoval, RecordStored, RecordSweepRemoval,
                 IdentifyLog, AdjustClock>;

}  // namespace attune
