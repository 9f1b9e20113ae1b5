#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/log/event.h"
#include "core/log/suggestion.h"

namespace attune {

// What people, executors and the clock ask of the brain. A command may be refused, may change
// nothing, and leaves no trace but the events it leads to.

// Answered with the sweep of the same non-empty idempotency_key when there is one.
struct CreateSweep {
  Boxed<SweepSpec> spec;
  std::string source;
  std::string idempotency_key;
  std::string owner{kAdmin};
  // What is to be taken of each of the spec's warm_start, in their order (core/brain/warm_start.h).
  std::vector<WarmStart> warm_start = {};
  std::string path = {};  // of the sweep file, absolute; empty: unknown
};

struct PauseSweep {  // start nothing; running trials save a checkpoint and leave
  SweepId sweep;
};

struct ResumeSweep {
  SweepId sweep;
};

// Sets what is given. Opens a sweep that has ended again, unless that is too long ago.
struct ExtendSweep {
  SweepId sweep;
  std::optional<int> max_trials;  // 0: no limit, as below
  std::optional<Seconds> max_time;
  std::optional<double> max_gpu_hours;
  std::optional<Step> max_step;  // not below the present one
};

// Gives the sweep another specification, the present one but for what core/brain/edit.h lets
// change; its initial points stay, but for those that were not tried and lie outside. Trials that
// lie outside of new ranges go on. Refused when the sweep was edited after `seen`, the newest event
// that whoever asks knew of. Opens a sweep that has ended again, unless that is too long ago.
struct EditSweep {
  SweepId sweep;
  Boxed<SweepSpec> spec;
  EventSeq seen{0};
};

struct StopSweep {  // finish running trials, start none
  SweepId sweep;
};

struct KillSweep {  // end every trial now
  SweepId sweep;
};

// Of a sweep that has ended nothing stays but its part of the log. Refused when something of it has
// changed after `seen`, the newest event that whoever asks knew of.
struct DeleteSweep {
  SweepId sweep;
  EventSeq seen{0};
};

// What the searcher of a sweep has thought of, for the ProposalBegun at this position. One that
// comes twice, or that the sweep has no use for any more, changes nothing.
struct Propose {
  SweepId sweep;
  ProposalNumber proposal;
  EventSeq position;
  Suggestion suggestion;
};

// A configuration of a person's, tried before any further proposal.
struct EnqueueTrial {
  SweepId sweep;
  Config config;
  std::string idempotency_key;
};

struct KillTrial {
  TrialId trial;
};

// A trial that has ended is tried again (`until` is 0: with its restarts counted anew, from its
// newest checkpoint or from the start), or goes on to a later step, unjudged.
// Refused when the record may be out of date. A trial that begins from the start has no use for its
// checkpoints: each goes as soon as nothing else refers to it.
struct ReopenTrial {
  TrialRecord record;
  Step until{0};
  bool from_start = false;
};

// The next trial of a sweep without a program, for whoever asks. Its attempt has no ranks; reports
// and its end are told by RecordFact, with the epoch of the answer.
struct AskTrial {
  SweepId sweep;
  std::string idempotency_key;
  Seconds lease{0};                // see AttemptAssigned
  std::optional<AttemptId> after;  // while this one is live, nothing is asked
};

// Whether a checkpoint stays whatever the sweep's policy says. One that is let go, and that nothing
// else refers to, is dropped, unless its sweep ended too long ago.
struct PinCheckpoint {
  CheckpointId checkpoint;
  bool pinned = true;
};

// A checkpoint that a person has no use for; `record` says what is known of its trial. Refused
// while anything needs it, and when the trial has left the brain and the record may be out of date.
// One that is gone already leads to nothing.
struct DropCheckpoint {
  CheckpointId checkpoint;
  TrialRecord record;
};

// Files of a sweep in an executor's data folder. Sweeps of several logs may have the same number;
// `identity` is that of the log when this one was created.
struct SweepFiles {
  SweepId sweep;
  LogIdentity identity;
  bool operator==(const SweepFiles&) const = default;
};

// An executor opened its stream. The same `instance` as before is the same process again; another
// one means that the earlier process and its gangs are gone.
struct JoinExecutor {
  std::string name;
  std::string instance;
  std::string address;
  Resources resources;
  bool spans = false;  // gangs can have ranks here and elsewhere
  std::string folder;  // identity of its data folder (ExecutorJoined); empty: not known
  Labels labels;
  Seconds time_left{0};                 // until it has to end; 0: as long as it likes
  std::vector<SweepFiles> sweeps = {};  // in its data folder
};

// Nothing more starts on an executor until it is resumed, whatever becomes of its process; what
// runs there finishes. `now`: what can go on elsewhere is asked to, at its next report, with a
// checkpoint.
struct DrainExecutor {
  std::string name;
  std::string reason;  // empty: none, or the one that it was drained for before
  bool now = false;
};

// Also one in quarantine, or that sweeps have excluded.
struct ResumeExecutor {
  std::string name;
};

// What an executor says of itself (ExecutorHealth). Ignored when the incarnation is not the current
// one.
struct SayHealth {
  std::string name;
  Incarnation incarnation;
  std::string problem;  // empty: it is well
};

// An executor is about to end: what runs there is asked to save a checkpoint at its next report,
// and to go on elsewhere. Ignored when the incarnation is not the current one.
struct LeaveExecutor {
  std::string name;
  Incarnation incarnation;
};

// An executor's lease has ended. Ignored when the incarnation is not the current one.
struct LoseExecutor {
  std::string name;
  Incarnation incarnation;
  std::string reason;
};

// What an executor says about an attempt, fenced by the attempt's epoch: a fact of another epoch,
// of an attempt that has ended, or said before changes nothing.
//
// Of a gang over several executors the one with rank 0 speaks for all; the others say only how
// their part has ended. An attempt that finished has in `failure.message` why it may have reported
// nothing.
struct RecordFact {
  Epoch epoch;
  std::variant<AttemptRenewed, AttemptStarted, AttemptFirstStep, RendezvousOpened, TrialReported,
               MetricsLogged, CheckpointSaved, AttemptEnded>
      fact;
  std::string executor;  // that says it; empty: whoever asked for the trial, or its only executor
};

// The files of a checkpoint are gone: of a dropped one, or of one that was dropped in a part of the
// log that was lost. Said again, it changes nothing.
struct RecordRemoval {
  CheckpointId checkpoint;
  std::string executor = {};  // that says it
  // Of the log that the executor knew. A removal of an earlier identity is ignored: another
  // checkpoint may have the name by now.
  LogIdentity identity = {};
};

// The files of a deleted sweep are gone from a data folder, an executor says. Said again, it
// changes nothing.
struct RecordSweepRemoval {
  SweepId sweep;
  std::string folder;  // FolderOf(executor)
  std::string executor;
  LogIdentity identity = {};  // as in RecordRemoval
};

// The server has found that a backup was restored, or that the log has no identity yet. It changes
// nothing if the log has another identity than `before` by now.
struct IdentifyLog {
  LogIdentity before;
  LogIdentity identity;
  std::string reason = {};  // LogIdentified::reason
};

// People's time is that of the log plus this from now on (ClockAdjusted). Asked again, it changes
// nothing.
struct AdjustClock {
  int64_t offset_us = 0;
  std::string reason;
};

using Command =
    std::variant<CreateSweep, PauseSweep, ResumeSweep, ExtendSweep, EditSweep, StopSweep, KillSweep,
                 DeleteSweep, Propose, EnqueueTrial, KillTrial, ReopenTrial, AskTrial,
                 PinCheckpoint, DropCheckpoint, JoinExecutor, LoseExecutor, DrainExecutor,
                 ResumeExecutor, LeaveExecutor, SayHealth, RecordFact, RecordRemoval,
                 RecordSweepRemoval, IdentifyLog, AdjustClock>;

}  // namespace attune
