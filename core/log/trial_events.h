#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/boxed.h"
#include "core/base/ids.h"
#include "core/log/event_row.h"
#include "core/log/event_values.h"
#include "core/log/suggestion.h"
#include "core/log/verdict.h"
#include "core/space/value.h"

// Events of a trial: what it is, what it reports and what is decided about it.
namespace attune {

// Origins of trials that no searcher proposed.
inline constexpr std::string_view kInitialPoints = "initial_points";
inline constexpr std::string_view kEnqueued = "enqueued";

// The reason of a TrialEnded if a user killed only this trial.
inline constexpr std::string_view kKilledByUser = "killed on request";

// A trial exists from now on and waits for an attempt.
struct TrialCreated {
  TrialId trial;
  Config config;
  std::string origin;           // name of the searcher, kInitialPoints or kEnqueued
  std::string idempotency_key;  // of the request that asked for it; empty: none
  // The number of the searcher's proposal, which also seeds its random draws. Null if the searcher
  // did not propose the trial.
  std::optional<ProposalNumber> proposal = {};
  std::optional<EventSeq> thought = {};  // the ProposalBegun that it answers
  std::optional<Boxed<Rationale>> rationale = {};
  std::optional<Boxed<TrialPatch>> patch = {};

  static constexpr auto kRow = EventRow(
      {"trial_created", Needs::kSweep, kNoExecutor,
       Handled(kStream | kTables | kSummary | kCurves | kAudit), Ignored(kNoConsumer)},
      &TrialCreated::trial, Field("config", &TrialCreated::config),
      Field("origin", &TrialCreated::origin),
      Sparse("idempotency_key", &TrialCreated::idempotency_key),
      Field("proposal", &TrialCreated::proposal), Sparse("thought", &TrialCreated::thought),
      Sparse("rationale", &TrialCreated::rationale), Sparse("patch", &TrialCreated::patch));
};

// A trial that had ended waits for another attempt.
struct TrialReopened {
  TrialRecord record;
  Step until{0};            // runs to this step whatever the scheduler says; 0: as any trial
  bool from_start = false;  // and not from its newest checkpoint
  std::string reason;

  static constexpr auto kRow = EventRow(
      {"trial_reopened", Needs::kSweep, kGangs | kTrialRecord,
       Handled(kStream | kTables | kSummary | kCurves), Ignored(kAudit)},
      [](auto& fact) -> auto& { return fact.record.id; }, Inline(&TrialReopened::record),
      Field("until", &TrialReopened::until), Field("from_start", &TrialReopened::from_start),
      Field("reason", &TrialReopened::reason));
};

// Rank 0 reported metrics at a step.
struct TrialReported {
  AttemptId attempt;
  Report report;

  static constexpr auto kRow =
      EventRow({"trial_reported", Needs::kLiveAttempt, kNoExecutor,
                Handled(kStream | kTables | kSummary | kCurves), Ignored(kAudit)},
               &TrialReported::attempt, Inline(&TrialReported::report));
};

// The program logged metrics between reports (Context::Log). They are points of curves; no
// searcher, scheduler or limit sees them.
struct MetricsLogged {
  AttemptId attempt;
  int64_t number = 0;  // counts from 1 within the attempt, so a repeated message is recognised
  double step = 0;     // 2.25 is a quarter of the way from step 2 to step 3
  Metrics metrics;

  static constexpr auto kRow =
      EventRow({"metrics_logged", Needs::kLiveAttempt, kNoExecutor, Handled(kStream | kTables),
                Ignored(kSummary | kCurves | kAudit)},
               &MetricsLogged::attempt, Field("number", &MetricsLogged::number),
               Field("step", &MetricsLogged::step), Field("metrics", &MetricsLogged::metrics));
};

// The trial gets this verdict at its next report that waits for one. With kContinue, it gets any
// verdict.
struct TrialYielding {
  TrialId trial;
  Verdict verdict;

  static constexpr auto kRow = EventRow({"trial_yielding", Needs::kTrial, kGangs, Handled(kStream),
                                         Ignored(kTables | kSummary | kCurves | kAudit)},
                                        &TrialYielding::trial, Inline(&TrialYielding::verdict));
};

// The verdict on a report that waits for one.
struct TrialDecided {
  AttemptId attempt;
  Step step;
  Verdict verdict;
  Step milestone;                               // the next one; 0 if the trial does not continue
  std::optional<Boxed<KeptCheckpoint>> cloned;  // kExploit: the donor's checkpoint

  static constexpr auto kRow = EventRow(
      {"trial_decided", Needs::kLiveAttempt, kGangs, Handled(kStream | kTables | kCurves | kAudit),
       Ignored(kSummary)},
      &TrialDecided::attempt, Field("step", &TrialDecided::step), Inline(&TrialDecided::verdict),
      Field("milestone", &TrialDecided::milestone), Sparse("cloned", &TrialDecided::cloned));
};

// The scheduler promoted a paused trial, which now waits for its next attempt.
struct TrialPromoted {
  TrialId trial;
  Reason reason;
  std::optional<Config> config = {};       // its new configuration, if that changes
  std::optional<CheckpointId> donor = {};  // the checkpoint of another trial that it resumes from
  std::optional<Boxed<KeptCheckpoint>> cloned = {};  // the same checkpoint

  static constexpr auto kRow =
      EventRow({"trial_promoted", Needs::kTrial, kGangs,
                Handled(kStream | kTables | kCurves | kAudit), Ignored(kSummary)},
               &TrialPromoted::trial, Field("reason", &TrialPromoted::reason),
               Sparse("config", &TrialPromoted::config), Sparse("donor", &TrialPromoted::donor),
               Sparse("cloned", &TrialPromoted::cloned));
};

// The trial waits for another attempt.
struct TrialRequeued {
  TrialId trial;
  std::string reason;
  Time not_before;
  std::string avoided;  // an executor to avoid if another has room; empty: none

  static constexpr auto kRow =
      EventRow({"trial_requeued", Needs::kTrial, kNoExecutor, Handled(kStream | kTables),
                Ignored(kSummary | kCurves | kAudit)},
               &TrialRequeued::trial, Field("reason", &TrialRequeued::reason),
               Field("not_before_us", &TrialRequeued::not_before),
               Sparse("avoided", &TrialRequeued::avoided));
};

// A user changed the note or the tags of a trial, whose sweep may have ended.
struct TrialAnnotated {
  TrialId trial;
  Annotation annotation;

  static constexpr auto kRow =
      EventRow({"trial_annotated", Needs::kCreatedSweep, kNoExecutor, Handled(kStream | kTables),
                Ignored(kSummary | kCurves | kAudit)},
               &TrialAnnotated::trial, Inline(&TrialAnnotated::annotation));
};

// The trial ended.
struct TrialEnded {
  TrialId trial;
  TrialState state;
  std::string reason;

  static constexpr auto kRow = EventRow(
      {"trial_ended", Needs::kTrial, kGangs | kTrialRecord,
       Handled(kStream | kTables | kSummary | kCurves), Ignored(kAudit)},
      &TrialEnded::trial, Field("state", &TrialEnded::state), Field("reason", &TrialEnded::reason));
};

}  // namespace attune
