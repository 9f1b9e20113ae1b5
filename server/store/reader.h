#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/analysis/importance.h"
#include "core/log/event.h"
#include "server/store/sqlite.h"

namespace attune::server {

// Rows as people see them. Times are text as FormatTime writes it; states are words.

struct BestTrial {
  TrialNumber trial;
  Step step;
  std::vector<double> values;  // of the sweep's objectives, in their order
  Config config;
  Metrics metrics;                        // of that step
  std::optional<std::string> checkpoint;  // of that step where it is kept; else the trial's newest
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
  std::map<std::string, int64_t, std::less<>> trials;  // how many are in each state; absent: none
  std::optional<SweepEdit> edit;
  std::vector<std::string> warm_start;  // what it has taken of each earlier sweep, in words
  std::vector<BestTrial> front;         // its best reports, as they were reported
  std::vector<std::string> logged;      // names of what its trials log between reports, sorted
  std::optional<std::string>
      damaged;  // why its columns of JSON cannot be read; those are empty then

  // The one that is the best in the first objective; null when there is none.
  const BestTrial* Best() const;
};

struct TrialRow {
  TrialId id;
  std::string state;
  std::string reason;
  Config config;
  std::string origin;  // the searcher, kInitialPoints or kEnqueued
  std::optional<Rationale> rationale;
  std::string created;
  std::optional<std::string> ended;
  std::optional<std::string> not_before;  // its next attempt
  uint32_t attempts = 0;
  Step step;
  Step milestone;
  Seconds seconds;
  Metrics metrics;
  std::optional<double> best;
  std::optional<std::string> checkpoint;
  std::optional<std::string> damaged;  // as of SweepRow
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
  std::vector<RankSlot> ranks;  // without memory
  std::vector<int64_t> pids;
  std::optional<int64_t> resumed_from;
  std::string decided;
  std::optional<std::string> started;
  std::optional<std::string> first_step;
  std::optional<std::string> ended;
};

// A verdict on a report, or on what waited to be promoted.
struct DecisionRow {
  uint32_t attempt = 0;  // that reported
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
  uint64_t policy = 0;  // the event by which it was set
  Step milestone;       // the next one; 0 when it does not continue
};

// One trial at a rung, as it stood there when it was judged.
struct RungRow {
  TrialNumber trial;
  std::optional<double> value;  // nullopt: not a number, the worst
  std::string verdict;          // on it there
};

// A decision with those it was compared with: at the same rung by the same rule, up to then.
struct Explanation {
  DecisionRow decision;
  std::string policy;           // the scheduler and its options that it was given by, as JSON
  bool policy_changed = false;  // since then
  std::vector<RungRow>
      rung;  // the best first, the trial itself among them; empty: compared with none
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
  std::optional<std::string> removed;  // when its files were gone
  std::string reason;                  // why it was dropped
};

// One of a sweep's; in a list, one whose files are kept.
struct KeptRow {
  TrialNumber trial;
  CheckpointRow checkpoint;
  std::string executor;        // that saved it
  std::optional<double> best;  // the trial's best value, where its step is this one
};

struct KeptPage {
  std::vector<KeptRow> checkpoints;
  bool more = false;  // there are trials after those that were looked at
};

struct TrialDetail {
  EventSeq seen;  // the newest event of the log when it was read
  TrialRow trial;
  std::vector<ReportRow> history;
  std::vector<AttemptRow> attempts;
  std::vector<DecisionRow> decisions;
  std::vector<CheckpointRow> checkpoints;
};

struct Clone {
  TrialNumber donor;
  Step step;  // of the donor's checkpoint, from which the trial has gone on
};

// A part of a curve that one attempt reported. It ends where the next segment begins.
struct CurveSegment {
  uint32_t attempt = 0;
  Step first_step;

  bool operator==(const CurveSegment&) const = default;
};

struct Curve {
  TrialNumber trial;
  // Its reports by growing step. If several attempts cover a step, the newest counts: an attempt
  // covers the steps from where it resumed up to its last report.
  std::vector<int64_t> steps;
  std::vector<double> values;
  std::vector<CurveSegment> segments = {};
  // Of what was logged between reports, without what later attempts have replaced: growing.
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

// One page of curves. It holds whole trials.
struct Curves {
  EventSeq seq;  // the last event they include
  std::vector<Curve> trials;
  std::optional<TrialNumber> next;  // the first trial of the next page; nullopt: this is the last
};

inline constexpr size_t kCurvePointsPerPage = 500'000;
inline constexpr std::chrono::seconds kCurvesTime{10};

// What reading one page of curves may take. A trial that would exceed it begins the next page.
struct CurveLimits {
  size_t points = kCurvePointsPerPage;
  std::chrono::steady_clock::duration time = kCurvesTime;
  std::stop_token stop = {};  // nobody waits for the answer any more
};

struct EventsPage {
  std::vector<Event> events;
  EventSeq seen;      // there is nothing more to send up to here
  bool more = false;  // the log continues after `seen`
};

// How many there are in each state; none where that is absent.
struct StateCounts {
  EventSeq last;  // of the log
  std::map<std::string, int64_t> sweeps;
  std::map<std::string, int64_t> trials;
};

// Queries on an Attune database, each on a consistent snapshot of it. Any thread; a query takes one
// of a few read-only connections and never holds up the writer.
class Reader {
 public:
  // One that looks for its database when it is first asked.
  static std::unique_ptr<Reader> At(const std::string& path);

  // REQUIRES: a SqliteStore has made or migrated the file.
  static Result<std::unique_ptr<Reader>> Open(const std::string& path);
  ~Reader();

  // Why nothing can be read from the tables now: kUnavailable while they are rebuilt, with how far
  // that is. All others but LastSeq then give the same error.
  Status Ready();

  Result<StateCounts> Counts();

  // Newest first, below `before`; nullopt: from the newest.
  Result<std::vector<SweepRow>> Sweeps(std::optional<SweepId> before, int limit);
  Result<SweepRow> Sweep(SweepId id);  // kNotFound
  struct SweepFile {
    std::string text;  // as it was sent
    std::string path;  // absolute; empty: unknown
  };
  Result<SweepFile> FileOf(SweepId id);  // kNotFound

  // By number, from `first` on. kNotFound: no such sweep.
  Result<std::vector<TrialRow>> Trials(SweepId sweep, TrialNumber first, int limit);
  // The checkpoints that are kept of so many trials, by number from `first` on, each trial's by
  // step. kNotFound: no such sweep.
  Result<KeptPage> Checkpoints(SweepId sweep, TrialNumber first, int trials);
  // One of a trial's, be it kept or dropped. kNotFound.
  Result<KeptRow> Checkpoint(const CheckpointId& id);
  // The first of the sweep's that a person has pinned; null when none is.
  Result<std::optional<CheckpointId>> Pinned(SweepId sweep);
  Result<TrialRow> Trial(const TrialId& id);        // kNotFound
  Result<TrialDetail> Detail(const TrialId& id);    // kNotFound
  Result<AttemptRow> Attempt(const AttemptId& id);  // kNotFound

  // The newest decision on a trial, or the one at a step; nullopt: there is none. kNotFound.
  Result<std::optional<Explanation>> Explain(const TrialId& id, std::optional<Step> step);

  // Returns the event that an earlier request with this key led to, whatever its body was
  // (core/log/request_key.h). Sweep 0 means requests that create sweeps.
  Result<std::optional<Event>> Requested(SweepId sweep, const std::string& request_key);
  // Returns the key of that earlier request, which ends with the digest of its body.
  Result<std::optional<std::string>> RequestKeyOf(SweepId sweep, const std::string& request_key);

  // What has become of its trials, by number: of those that have come to an end, by themselves, a
  // verdict or a failure, or are paused. The metrics of the report that is the best in the sweep's
  // first one, none where no report counts, with the configuration of now.
  Result<std::vector<TrialResult>> Results(SweepId sweep);

  // Every report that has the metric, and what was logged of it, from trial `first` on. kNotFound:
  // no such sweep. kInvalid: one trial alone exceeds the limits. kUnavailable: stopped.
  Result<Curves> CurvesOf(SweepId sweep, const std::string& metric,
                          TrialNumber first = TrialNumber(0), const CurveLimits& limits = {});
  // What the trial has logged, as the events after `after` tell, at most `limit` of them.
  Result<std::vector<LoggedRow>> LoggedBy(const TrialId& trial, EventSeq after, int limit);

  // A time of the log as people see it at this event.
  Result<Time> Shown(EventSeq seq, Time time);

  // The next events of seq > after, at most `limit`; with a sweep, its own and the executors'. They
  // have the times that people see. It looks at no more than kEventsPerLook events, so that a
  // filter does not make a read long.
  Result<EventsPage> EventsAfter(EventSeq after, std::optional<SweepId> sweep, int limit);
  Result<EventSeq> LastSeq();

  // Shows the events of a sweep in order, from its creation on, until `visit` says false; of these
  // kinds only, if there are some. kNotFound.
  Status Events(SweepId sweep, const std::function<bool(const Event&)>& visit,
                std::span<const std::string_view> kinds = {});

 private:
  class Lease;

  explicit Reader(std::string path) : path_(std::move(path)) {}

  template <class T, class Query>
  Result<T> InSnapshot(Query query);
  // As InSnapshot, also while there are no tables.
  template <class T, class Query>
  Result<T> InLog(Query query);
  Status CheckTables(sqlite::Connection& connection);

  std::string path_;
  std::atomic<bool> ready_ = false;  // the tables are there, and stay
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<sqlite::Connection>> idle_;
  int open_ = 0;
};

inline constexpr uint64_t kEventsPerLook = 4'096;

// Connections a Reader opens at most; a query waits for one to come back.
inline constexpr int kReadConnections = 8;

}  // namespace attune::server
