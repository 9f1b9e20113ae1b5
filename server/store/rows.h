#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/analysis/importance.h"
#include "core/log/event.h"
#include "server/store/thinned/thinned_curve.h"
#include "server/store/trials/trial_query.h"

namespace attune::server {

// Rows for people. Times are text in the format of FormatTime, and states are words.

struct BestTrial {
  TrialNumber trial;
  Step step;
  std::vector<double> values;  // one for each objective of the sweep
  Config config;
  Metrics metrics;  // the metrics of that step
  // path of the step's checkpoint, or else of the trial's newest
  std::optional<std::string> checkpoint;
  std::optional<int64_t> checkpoint_step;
};

// The newest change of a sweep's specification.
struct SweepEdit {
  std::string time;
  std::string actor;
  std::vector<std::string> changes;
};

struct SweepRow {
  SweepId id;
  std::string state;
  std::string reason;
  std::string created;
  std::optional<std::string> ended;
  std::optional<std::string> reserved;  // the executor whose slots are kept for its next gang
  std::string owner;
  SweepSpec spec;
  // number of trials in each state; a missing state means 0
  std::map<std::string, int64_t, std::less<>> trials;
  std::optional<SweepEdit> edit;
  std::vector<std::string> warm_start;  // a text for each earlier sweep from which it took results
  std::string note;
  std::vector<std::string> tags;  // at first those of its file
  std::vector<BestTrial> front;   // its best reports
  // names of the metrics that its trials log between reports, sorted
  std::vector<std::string> logged;
  std::optional<std::string>
      damaged;  // why a column of JSON cannot be read; those columns are then empty

  // The best trial in the first objective; null if there is none.
  const BestTrial* Best() const;
};

struct TrialRow {
  TrialId id;
  std::string state;
  std::string reason;
  Config config;
  std::string origin;  // name of the searcher, kInitialPoints or kEnqueued
  std::optional<Rationale> rationale;
  std::string created;
  std::optional<std::string> ended;
  std::optional<std::string> not_before;  // earliest start of its next attempt
  uint32_t attempts = 0;
  Step step;
  Step milestone;
  Seconds seconds;
  Metrics metrics;
  std::optional<double> best;
  std::optional<std::string> checkpoint;
  std::string note;
  std::vector<std::string> tags;
  std::optional<TrialPatch> patch;
  std::optional<std::string> damaged;  // see SweepRow
};

// One page of a sweep's trials.
struct TrialPage {
  EventSeq seq;       // the rows include all events up to here, and perhaps later ones
  int64_t total = 0;  // the number of trials that match the filter, on all pages
  std::vector<TrialRow> trials;
  std::optional<TrialPosition> next;  // where the next page begins; nullopt: last page
};

struct ReportRow {
  Time time;
  uint32_t attempt = 0;
  Report report;
};

struct AttemptRow {
  uint32_t number = 0;
  uint64_t epoch = 0;
  std::string state;
  std::string outcome;
  std::string failure;
  std::string executor;
  std::vector<RankSlot> ranks;  // their memory is not stored
  std::vector<int64_t> pids;
  std::optional<int64_t> resumed_from;
  std::string decided;
  std::optional<std::string> started;
  std::optional<std::string> first_step;
  std::optional<std::string> ended;
};

// With what an attempt ran on one executor.
struct EnvironmentRow {
  std::string executor;
  std::string recorded;  // time
  std::string record;    // as the executor wrote it; JSON unless it has a fault
};

struct AttemptEnvironment {
  uint32_t attempt = 0;
  std::vector<EnvironmentRow> executors;  // by name
};

// A verdict on a report, or on a trial that waited for promotion.
struct DecisionRow {
  uint32_t attempt = 0;  // the attempt that reported
  std::string time;
  Step step;
  std::string verdict;
  std::string reason;
  std::string rule;
  Step rung;
  std::optional<double> value;
  std::optional<double> cutoff;
  int64_t rank = 0;
  int64_t peers = 0;
  uint64_t policy = 0;  // the event that set the policy
  Step milestone;       // the next milestone; 0 if the trial does not continue
};

// One trial at a rung, at the time when it was judged there.
struct RungRow {
  TrialNumber trial;
  std::optional<double> value;  // nullopt: NaN, which ranks last
  std::string verdict;          // the verdict at the rung
};

// A decision and the trials with which it was compared: those that the same rule had judged at the
// same rung by then.
struct Explanation {
  DecisionRow decision;
  std::string policy;           // the scheduler that decided, with its options, as JSON
  bool policy_changed = false;  // whether the scheduler has changed since
  std::vector<RungRow> rung;  // best first, including the trial itself; empty: it was not compared
};

struct CheckpointRow {
  Step step;
  uint32_t attempt = 0;
  std::string path;
  std::string digest;
  int64_t bytes = 0;
  std::string time;
  bool pinned = false;
  std::optional<std::string> dropped;  // when nothing referred to it any more
  std::optional<std::string> removed;  // when its files were deleted
  std::string reason;                  // why it was dropped
  std::string stored;                  // the object store that has a copy; empty: none
};

// A checkpoint of a sweep. Lists contain only those whose files are kept.
struct KeptRow {
  TrialNumber trial;
  CheckpointRow checkpoint;
  std::string executor;        // the executor that saved it
  std::optional<double> best;  // the trial's best value, if the best step is this one
};

struct KeptPage {
  std::vector<KeptRow> checkpoints;
  bool more = false;  // more trials follow
};

struct TrialDetail {
  EventSeq seen;  // the newest event of the log at the time of reading
  TrialRow trial;
  std::vector<ReportRow> history;
  std::vector<AttemptRow> attempts;
  std::vector<DecisionRow> decisions;
  std::vector<CheckpointRow> checkpoints;
};

struct Clone {
  TrialNumber donor;
  Step step;  // step of the donor's checkpoint from which the trial continued
};

// A part of a curve that one attempt reported. It ends where the next segment begins.
struct CurveSegment {
  uint32_t attempt = 0;
  Step first_step;

  bool operator==(const CurveSegment&) const = default;
};

struct Curve {
  TrialNumber trial;
  // Its reports in order of steps. If several attempts cover a step, the newest counts. An attempt
  // covers the steps from where it resumed up to its last report.
  std::vector<int64_t> steps;
  std::vector<double> values;
  std::vector<CurveSegment> segments = {};
  // The values that were logged between reports, in order of steps, without those that later
  // attempts have replaced.
  std::vector<double> logged_steps = {};
  std::vector<double> logged_values = {};
  std::vector<Clone> clones = {};  // in order of time
};

struct LoggedRow {
  EventSeq seq;
  Time time;
  uint32_t attempt = 0;
  double step = 0;
  Metrics metrics;
};

// One page of curves. It contains only whole trials.
struct Curves {
  EventSeq seq;  // the last event they include
  std::vector<Curve> trials;
  std::optional<TrialNumber> next;  // the first trial of the next page; nullopt: last page
};

// Where the results of trials can be compared; see CommonStep in core/analysis/importance.h.
struct CommonSteps {
  std::vector<Step> rungs;
  Step last;  // the last step of each trial; 0: none
  // If the trials have more steps together, their values come from thinned curves.
  int64_t exact_steps_max = 100'000;
};

// The results of trials at a common step.
struct ComparedTrials {
  Step step;  // 0: no trial has reported
  std::vector<TrialResult> results;
};

inline constexpr size_t kCurvePointsPerPage = 500'000;
inline constexpr std::chrono::seconds kCurvesTime{10};

inline constexpr std::chrono::seconds kTrialsTime{10};

// The limits of one page of curves. A trial that would exceed them begins the next page.
struct CurveLimits {
  size_t points = kCurvePointsPerPage;
  std::chrono::steady_clock::duration time = kCurvesTime;
  std::stop_token stop = {};  // set when the client has gone
};

// Which thinned curves are read, and how many points of each.
struct CurveSelection {
  size_t points = kThinnedPointsMax;  // at least 2
  TrialNumber first = {};             // from this trial on
  // Instead: only the trials with the best values in the first objective, at most this many.
  std::optional<size_t> best = {};
  // Instead: only these trials, sorted.
  std::optional<std::vector<TrialNumber>> trials = {};
  // Only steps in this closed range. The points are then read from the log. REQUIRES: `trials`.
  struct Range {
    double first_step = 0;
    double last_step = 0;
  };
  std::optional<Range> range = {};
};

// Reports and values that were logged between them, in order of steps.
struct ThinnedTrial {
  TrialNumber trial;
  bool mixed = false;  // whether the trial has both, reports and logged values
  std::vector<CurvePoint> points;
  std::vector<ThinnedSegment> segments;  // of reports
  std::vector<Clone> clones;             // in order of time
};

// One page of thinned curves, by trial. Trials without points are not in it.
struct ThinnedPage {
  EventSeq seq;  // the last event they include; the table may be a little behind the log
  std::vector<ThinnedTrial> trials;
  std::optional<TrialNumber> next;  // the first trial of the next page; nullopt: last page
};

struct HeldRank {
  int rank = 0;
  RankSlot slot;  // its memory is not stored
};

// An attempt that held slots of executors.
struct HeldRow {
  AttemptId attempt;
  std::string sweep_name;
  std::string outcome;      // empty: it still holds them
  Time begin;               // when it got the slots, as people see times
  std::optional<Time> end;  // nullopt: it still holds them
  std::vector<HeldRank> ranks;
};

struct HeldPage {
  std::vector<HeldRow> attempts;
  bool more = false;  // the limit was reached, so older attempts are missing
};

// The newest join of an executor.
struct JoinRow {
  std::string executor;
  Time joined;
  std::optional<Time> lost;
};

struct EventsPage {
  std::vector<Event> events;
  EventSeq seen;      // all events up to here were considered
  bool more = false;  // the log continues after `seen`
};

// An attempt that failed or was lost.
struct FailedAttempt {
  AttemptId attempt;
  std::optional<int64_t> rank;  // the rank that caused it
  std::string executor;
  std::string kind;     // the kind of the failure, or `lost`
  std::string failure;  // a sentence and, in further lines, the end of the rank's log
  std::string time;
};

// Failed attempts of the same kind whose messages have the same pattern.
struct FailureGroup {
  std::string kind;
  std::string pattern;  // see core/analysis/failure_pattern.h
  FailedAttempt first;  // the first in time; only the sentence of its failure
  std::string last;     // the time of the last one
  int64_t attempts = 0;
  int64_t trials = 0;
  std::vector<TrialNumber> some_trials;  // the first kFailureTrialsMax by number
};

struct Failures {
  int64_t attempts = 0;
  int64_t trials = 0;
  std::optional<FailedAttempt> first;  // the first in time
  std::vector<FailureGroup> groups;    // the most attempts first, at most kFailureGroupsMax
  int64_t ungrouped = 0;               // attempts that are in none of the groups
};

inline constexpr size_t kFailureGroupsMax = 100;
inline constexpr size_t kFailureTrialsMax = 20;
// More patterns are not counted separately, so that the memory is bounded.
inline constexpr size_t kFailurePatternsMax = 1'000;
// The bytes of a message by which attempts are grouped.
inline constexpr int64_t kFailureMessageBytes = 400;

// A trial continued from a checkpoint of another trial, or was promoted.
struct Branch {
  EventSeq seq;
  TrialNumber trial;
  std::optional<TrialNumber> donor;  // nullopt: a promotion
  Step step;                         // of the checkpoint, or of the report that was promoted
};

// Something that a user did to a sweep or to one of its trials (tables/activity.h).
struct UserAction {
  EventSeq seq;
  std::string time;
  std::string actor;
  std::string name;
  std::optional<TrialNumber> trial;
  std::string detail;
};

// The number of sweeps and trials in each state; a missing state means 0.
struct StateCounts {
  EventSeq last;  // the newest event of the log
  std::map<std::string, int64_t> sweeps;
  std::map<std::string, int64_t> trials;
};

}  // namespace attune::server
