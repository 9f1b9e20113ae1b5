#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/boxed.h"
#include "core/base/ids.h"
#include "core/log/event_row.h"
#include "core/log/event_values.h"
#include "core/log/sweep_spec.h"
#include "core/log/warm_start.h"

// Events of a sweep and its search.
namespace attune {

// The name of a server's first token.
inline constexpr std::string_view kAdmin = "admin";

// A user submitted a sweep.
struct SweepCreated {
  SweepId sweep;
  Boxed<SweepSpec> spec;
  std::string source;                             // the sweep file, unchanged
  std::string idempotency_key;                    // of the request; empty: none
  std::string owner{kAdmin};                      // the name of the token that submitted it
  Boxed<std::vector<WarmStart>> warm_start = {};  // one for each of spec.warm_start, in order
  std::string path = {};                          // of the sweep file, absolute; empty: unknown

  static constexpr auto kRow = EventRow(
      {"sweep_created", Needs::kNewSweep, kNoExecutor, Handled(kStream | kTables | kSummary),
       Ignored(kCurves | kAudit)},
      &SweepCreated::sweep, Field("spec", &SweepCreated::spec),
      Field("source", &SweepCreated::source),
      Field("idempotency_key", &SweepCreated::idempotency_key),
      Field("owner", &SweepCreated::owner), Sparse("warm_start", &SweepCreated::warm_start),
      Sparse("path", &SweepCreated::path));
};

// Nothing starts any more, and running trials yield at their next report.
struct SweepPaused {
  SweepId sweep;
  std::string reason;

  static constexpr auto kRow =
      EventRow({"sweep_paused", Needs::kSweep, kGangs, Handled(kStream | kTables | kSummary),
                Ignored(kCurves | kAudit)},
               &SweepPaused::sweep, Field("reason", &SweepPaused::reason));
};

// A paused sweep runs again.
struct SweepResumed {
  SweepId sweep;

  static constexpr auto kRow =
      EventRow({"sweep_resumed", Needs::kSweep, kGangs, Handled(kStream | kTables | kSummary),
                Ignored(kCurves | kAudit)},
               &SweepResumed::sweep);
};

// A user changed a sweep. `spec` is complete and holds from now on.
struct SweepEdited {
  SweepId sweep;
  Boxed<SweepSpec> spec;
  std::vector<std::string> changes;  // one sentence for each change

  static constexpr auto kRow =
      EventRow({"sweep_edited", Needs::kSweep, kGangs, Handled(kStream | kTables),
                Ignored(kSummary | kCurves | kAudit)},
               &SweepEdited::sweep, Field("spec", &SweepEdited::spec),
               Field("changes", &SweepEdited::changes));
};

// A sweep that had ended runs again. It has no trial to run yet.
struct SweepReopened {
  SweepId sweep;
  std::string reason;

  static constexpr auto kRow =
      EventRow({"sweep_reopened", Needs::kEndedSweep, kGangs, Handled(kStream | kTables | kSummary),
                Ignored(kCurves | kAudit)},
               &SweepReopened::sweep, Field("reason", &SweepReopened::reason));
};

// No new trial starts. When the running trials have ended, the sweep ends as `outcome`.
struct SweepStopping {
  SweepId sweep;
  SweepState outcome;  // kCompleted, kStopped, kFailed or kKilled
  std::string reason;

  static constexpr auto kRow =
      EventRow({"sweep_stopping", Needs::kSweep, kGangs, Handled(kStream | kTables),
                Ignored(kSummary | kCurves | kAudit)},
               &SweepStopping::sweep, Field("outcome", &SweepStopping::outcome),
               Field("reason", &SweepStopping::reason));
};

// A sweep ended.
struct SweepEnded {
  SweepId sweep;
  SweepState state;
  std::string reason;

  static constexpr auto kRow = EventRow(
      {"sweep_ended", Needs::kSweep, kGangs, Handled(kStream | kTables | kSummary),
       Ignored(kCurves | kAudit)},
      &SweepEnded::sweep, Field("state", &SweepEnded::state), Field("reason", &SweepEnded::reason));
};

// A user changed the note or the tags of a sweep, which may have ended.
struct SweepAnnotated {
  SweepId sweep;
  Annotation annotation;

  static constexpr auto kRow =
      EventRow({"sweep_annotated", Needs::kCreatedSweep, kNoExecutor, Handled(kStream | kTables),
                Ignored(kSummary | kCurves | kAudit)},
               &SweepAnnotated::sweep, Inline(&SweepAnnotated::annotation));
};

// A user deleted a sweep that had ended, with a delay. SweepDeleted follows, unless SweepUndeleted
// comes first. Until then nothing changes the sweep.
struct SweepDeletionScheduled {
  SweepId sweep;
  Time at;  // not earlier than this

  static constexpr auto kRow =
      EventRow({"sweep_deletion_scheduled", Needs::kGoneSweep, kNoExecutor, Handled(kStream),
                Ignored(kTables | kSummary | kCurves | kAudit)},
               &SweepDeletionScheduled::sweep, Field("at_us", &SweepDeletionScheduled::at));
};

// A user undid the scheduled deletion of a sweep.
struct SweepUndeleted {
  SweepId sweep;

  static constexpr auto kRow =
      EventRow({"sweep_undeleted", Needs::kGoneSweep, kNoExecutor, Handled(kStream),
                Ignored(kTables | kSummary | kCurves | kAudit)},
               &SweepUndeleted::sweep);
};

// A user deleted a sweep that had ended. Every executor deletes its files of the sweep. The store
// erases the earlier events of the sweep if `shared` is set, because `shared` holds everything else
// that the state needs from them.
struct SweepDeleted {
  SweepId sweep;
  std::optional<Boxed<SharedState>> shared = {};
  std::string idempotency_key = {};  // of its creation, which a late retry may repeat
  std::string requester = {};        // who scheduled the deletion; empty: the actor of this event

  static constexpr auto kRow =
      EventRow({"sweep_deleted", Needs::kGoneSweep, kGangs | kEveryExecutor,
                Handled(kStream | kTables), Ignored(kSummary | kCurves | kAudit)},
               &SweepDeleted::sweep, Sparse("shared", &SweepDeleted::shared),
               Sparse("idempotency_key", &SweepDeleted::idempotency_key),
               Sparse("requester", &SweepDeleted::requester));
};

// The files of a deleted sweep are gone from a data folder.
struct SweepRemoved {
  SweepId sweep;
  std::string folder;    // FolderOf(executor)
  std::string executor;  // the executor that removed them

  static constexpr auto kRow =
      EventRow({"sweep_removed", Needs::kNothing, kGangs | kRemovals, Handled(kNoConsumer),
                Ignored(kStream | kTables | kSummary | kCurves | kAudit)},
               &SweepRemoved::sweep, Field("folder", &SweepRemoved::folder),
               Field("executor", &SweepRemoved::executor));
};

// The searcher has no further configuration.
struct SearchExhausted {
  SweepId sweep;
  std::string reason = {};
  std::optional<EventSeq> thought = {};  // the ProposalBegun that it answers

  static constexpr auto kRow =
      EventRow({"search_exhausted", Needs::kSweep, kNoExecutor, Handled(kAudit),
                Ignored(kStream | kTables | kSummary | kCurves)},
               &SearchExhausted::sweep, Sparse("reason", &SearchExhausted::reason),
               Sparse("thought", &SearchExhausted::thought));
};

// The searcher starts to compute a proposal. It knows the log up to this event.
struct ProposalBegun {
  SweepId sweep;
  ProposalNumber proposal;

  static constexpr auto kRow =
      EventRow({"proposal_begun", Needs::kSweep, kGangs, Handled(kAudit),
                Ignored(kStream | kTables | kSummary | kCurves)},
               &ProposalBegun::sweep, Field("proposal", &ProposalBegun::proposal));
};

// The searcher answered the ProposalBegun at `thought` with no proposal. It waits for another
// event.
struct SearchWaits {
  SweepId sweep;
  EventSeq thought;
  std::string reason;

  static constexpr auto kRow =
      EventRow({"search_waits", Needs::kSweep, kGangs, Handled(kAudit),
                Ignored(kStream | kTables | kSummary | kCurves)},
               &SearchWaits::sweep, Field("thought", &SearchWaits::thought),
               Field("reason", &SearchWaits::reason));
};

}  // namespace attune
