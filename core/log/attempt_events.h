#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/boxed.h"
#include "core/base/ids.h"
#include "core/log/event_row.h"
#include "core/log/event_values.h"

// Events of an attempt and its checkpoints.
namespace attune {

// The lease of an asked trial if the client names none.
inline constexpr Seconds kAskedLease{3600};

// A trial got slots on executors, or a client that runs trials itself asked for it.
struct AttemptAssigned {
  AttemptId attempt;
  Epoch epoch;
  std::vector<RankSlot> ranks;  // by rank
  std::optional<CheckpointRef> resume;
  Step milestone;               // 0: none
  std::string idempotency_key;  // of the request that asked for it; empty: none
  // Why the attempt does not resume from the newest checkpoint; empty: it does.
  std::string reason;
  // For an attempt without ranks: after this time without a message, the client counts as gone. 0:
  // kAskedLease.
  Seconds lease{0};

  static constexpr auto kRow = EventRow(
      {"attempt_assigned", Needs::kTrial, kGangs,
       Handled(kStream | kTables | kSummary | kCurves | kAudit), Ignored(kNoConsumer)},
      &AttemptAssigned::attempt, Field("epoch", &AttemptAssigned::epoch),
      Field("ranks", &AttemptAssigned::ranks), Field("resume", &AttemptAssigned::resume),
      Field("milestone", &AttemptAssigned::milestone),
      Sparse("idempotency_key", &AttemptAssigned::idempotency_key),
      Sparse("reason", &AttemptAssigned::reason), Sparse("lease", &AttemptAssigned::lease));
};

// The client of an attempt without ranks is still there, so its lease starts again.
struct AttemptRenewed {
  AttemptId attempt;

  static constexpr auto kRow =
      EventRow({"attempt_renewed", Needs::kLiveAttempt, kNoExecutor, Handled(kNoConsumer),
                Ignored(kStream | kTables | kSummary | kCurves | kAudit)},
               &AttemptRenewed::attempt);
};

// All ranks are running.
struct AttemptStarted {
  AttemptId attempt;
  std::vector<int64_t> pids;  // by rank

  static constexpr auto kRow =
      EventRow({"attempt_started", Needs::kLiveAttempt, kNoExecutor, Handled(kStream | kTables),
                Ignored(kSummary | kCurves | kAudit)},
               &AttemptStarted::attempt, Field("pids", &AttemptStarted::pids));
};

// Every rank has finished its first optimizer step.
struct AttemptFirstStep {
  AttemptId attempt;
  Time at;  // by the executor's clock

  static constexpr auto kRow =
      EventRow({"attempt_first_step", Needs::kLiveAttempt, kNoExecutor, Handled(kTables),
                Ignored(kStream | kSummary | kCurves | kAudit)},
               &AttemptFirstStep::attempt, Field("at_us", &AttemptFirstStep::at));
};

// Where the ranks of a gang on several executors meet. It is repeated once rank 0 listens.
struct RendezvousOpened {
  AttemptId attempt;
  Rendezvous rendezvous;

  static constexpr auto kRow =
      EventRow({"rendezvous_opened", Needs::kLiveAttempt, kGangs, Handled(kNoConsumer),
                Ignored(kStream | kTables | kSummary | kCurves | kAudit)},
               &RendezvousOpened::attempt, Inline(&RendezvousOpened::rendezvous));
};

// The ranks on one of several executors ended. The last part ends the attempt.
struct AttemptPartEnded {
  AttemptId attempt;
  std::string executor;
  Outcome outcome;
  Failure failure;  // if kFailed; if kLost, only the message

  static constexpr auto kRow = EventRow(
      {"attempt_part_ended", Needs::kLiveAttempt, kGangs, Handled(kNoConsumer),
       Ignored(kStream | kTables | kSummary | kCurves | kAudit)},
      &AttemptPartEnded::attempt, Field("executor", &AttemptPartEnded::executor),
      Field("outcome", &AttemptPartEnded::outcome), Sparse("failure", &AttemptPartEnded::failure));
};

// The attempt ended. Its outcome is that of the first part that did not finish.
struct AttemptEnded {
  AttemptId attempt;
  Outcome outcome;
  Failure failure;  // if kFailed

  static constexpr auto kRow =
      EventRow({"attempt_ended", Needs::kLiveAttempt, kGangs | kTrialRecord,
                Handled(kStream | kTables | kSummary | kCurves), Ignored(kAudit)},
               &AttemptEnded::attempt, Field("outcome", &AttemptEnded::outcome),
               Sparse("failure", &AttemptEnded::failure));
};

// A checkpoint is complete.
struct CheckpointSaved {
  AttemptId attempt;
  CheckpointRef checkpoint;
  int64_t bytes = 0;

  static constexpr auto kRow =
      EventRow({"checkpoint_saved", Needs::kLiveAttempt, kTrialRecord, Handled(kStream | kTables),
                Ignored(kSummary | kCurves | kAudit)},
               &CheckpointSaved::attempt, Inline(&CheckpointSaved::checkpoint),
               Field("bytes", &CheckpointSaved::bytes));
};

// A user wants to keep a checkpoint, or does no longer.
struct CheckpointPinned {
  CheckpointId checkpoint;
  bool pinned = true;

  static constexpr auto kRow =
      EventRow({"checkpoint_pinned", Needs::kCreatedSweep, kTrialRecord, Handled(kStream | kTables),
                Ignored(kSummary | kCurves | kAudit)},
               &CheckpointPinned::checkpoint, Field("pinned", &CheckpointPinned::pinned));
};

// Nothing needs a checkpoint any more. Its executor deletes it.
struct CheckpointDropped {
  CheckpointId checkpoint;
  std::string executor;
  std::string path;
  std::string reason;

  static constexpr auto kRow = EventRow(
      {"checkpoint_dropped", Needs::kCreatedSweep, kGangs | kTrialRecord,
       Handled(kStream | kTables), Ignored(kSummary | kCurves | kAudit)},
      &CheckpointDropped::checkpoint, Field("executor", &CheckpointDropped::executor),
      Field("path", &CheckpointDropped::path), Field("reason", &CheckpointDropped::reason));
};

// The files of a dropped checkpoint are gone.
struct CheckpointRemoved {
  CheckpointId checkpoint;

  static constexpr auto kRow =
      EventRow({"checkpoint_removed", Needs::kNothing, kGangs | kRemovals, Handled(kTables),
                Ignored(kStream | kSummary | kCurves | kAudit)},
               &CheckpointRemoved::checkpoint);
};

// An object store has a copy of a checkpoint, or no longer has one.
struct CheckpointStored {
  CheckpointId checkpoint;
  std::string digest;   // of the checkpoint
  std::string address;  // of the store, such as s3://bucket/prefix; empty: no copy
  bool only = false;    // the executor no longer has the files

  static constexpr auto kRow = EventRow(
      {"checkpoint_stored", Needs::kCreatedSweep, kGangs | kTrialRecord, Handled(kTables),
       Ignored(kStream | kSummary | kCurves | kAudit)},
      &CheckpointStored::checkpoint, Field("digest", &CheckpointStored::digest),
      Field("address", &CheckpointStored::address), Sparse("only", &CheckpointStored::only));
};

}  // namespace attune
