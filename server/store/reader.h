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
  std::vector<BestTrial> front;         // its best reports
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
  std::optional<std::string> damaged;  // see SweepRow
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

inline constexpr size_t kCurvePointsPerPage = 500'000;
inline constexpr std::chrono::seconds kCurvesTime{10};

// The limits of one page of curves. A trial that would exceed them begins the next page.
struct CurveLimits {
  size_t points = kCurvePointsPerPage;
  std::chrono::steady_clock::duration time = kCurvesTime;
  std::stop_token stop = {};  // set when the client has gone
};

struct EventsPage {
  std::vector<Event> events;
  EventSeq seen;      // all events up to here were considered
  bool more = false;  // the log continues after `seen`
};

// The number of sweeps and trials in each state; a missing state means 0.
struct StateCounts {
  EventSeq last;  // the newest event of the log
  std::map<std::string, int64_t> sweeps;
  std::map<std::string, int64_t> trials;
};

// Queries on an Attune database, each on a consistent snapshot. Any thread. A query uses one of a
// few read-only connections and never blocks the writer.
class Reader {
 public:
  // Makes a reader that opens the database at the first query.
  static std::unique_ptr<Reader> MakeLazy(const std::string& path);

  // Opens the database now. REQUIRES: a SqliteStore has created or migrated the file.
  static Result<std::unique_ptr<Reader>> Open(const std::string& path);
  ~Reader();

  // Why the tables cannot be read now: kUnavailable while they are rebuilt, with the progress. All
  // other queries except LastSeq then return this error.
  Status Ready();

  Result<StateCounts> CountStates();

  // Sweeps with ids below `before`, newest first; nullopt: from the newest.
  Result<std::vector<SweepRow>> Sweeps(std::optional<SweepId> before, int limit);
  Result<SweepRow> Sweep(SweepId id);  // kNotFound
  struct SweepFile {
    std::string text;  // as the client sent it
    std::string path;  // absolute; empty: unknown
  };
  Result<SweepFile> FileOf(SweepId id);  // kNotFound

  // Trials by number, from `first` on. kNotFound: no such sweep.
  Result<std::vector<TrialRow>> Trials(SweepId sweep, TrialNumber first, int limit);
  // The kept checkpoints of `trials` trial numbers from `first` on, by trial and step. kNotFound:
  // no such sweep.
  Result<KeptPage> Checkpoints(SweepId sweep, TrialNumber first, int trials);
  // A checkpoint, even if it was dropped. kNotFound.
  Result<KeptRow> Checkpoint(const CheckpointId& id);
  // The first pinned checkpoint of the sweep; nullopt if none is pinned.
  Result<std::optional<CheckpointId>> FirstPinned(SweepId sweep);
  Result<TrialRow> Trial(const TrialId& id);        // kNotFound
  Result<TrialDetail> Detail(const TrialId& id);    // kNotFound
  Result<AttemptRow> Attempt(const AttemptId& id);  // kNotFound

  // The newest decision on a trial, or the one at `step`; nullopt if there is none. kNotFound: no
  // such trial.
  Result<std::optional<Explanation>> Explain(const TrialId& id, std::optional<Step> step);

  // Returns the event of an earlier request with this key, whatever its body was
  // (core/log/request_key.h). Sweep 0 means requests that create sweeps.
  Result<std::optional<Event>> FindRequest(SweepId sweep, const std::string& request_key);
  // Returns the key of that earlier request, which ends with the digest of its body.
  Result<std::optional<std::string>> RequestKeyOf(SweepId sweep, const std::string& request_key);

  // The results of trials that have ended by themselves, by a verdict or by a failure, or that are
  // paused, by number. The metrics are those of the best report in the sweep's first objective, or
  // empty if no report counts. The configuration is the current one.
  Result<std::vector<TrialResult>> Results(SweepId sweep);

  // The curves of a metric in reports and logged values, from trial `first` on. kNotFound: no such
  // sweep. kInvalid: a single trial exceeds the limits. kUnavailable: stopped.
  Result<Curves> MetricCurves(SweepId sweep, const std::string& metric,
                              TrialNumber first = TrialNumber(0), const CurveLimits& limits = {});
  // The metrics that the trial logged in events after `after`, at most `limit` of them.
  Result<std::vector<LoggedRow>> Logged(const TrialId& trial, EventSeq after, int limit);

  // Converts a time of the log at this event to the time that people see.
  Result<Time> DisplayTime(EventSeq seq, Time time);

  // The next events of seq > after, at most `limit`, with the times that people see. With a sweep,
  // only its events and those without a sweep. Considers at most kEventsPerScan events, so that a
  // filter does not make a read slow.
  Result<EventsPage> EventsAfter(EventSeq after, std::optional<SweepId> sweep, int limit);
  Result<EventSeq> LastSeq();

  // Calls `visit` with the events of a sweep in order, from its creation on, until it returns
  // false. If `kinds` is not empty, only with events of these kinds. kNotFound: no such sweep.
  Status Events(SweepId sweep, const std::function<bool(const Event&)>& visit,
                std::span<const std::string_view> kinds = {});

 private:
  class Lease;

  explicit Reader(std::string path) : path_(std::move(path)) {}

  template <class T, class Query>
  Result<T> InSnapshot(Query query);
  // Like InSnapshot, but also works while the tables are rebuilt.
  template <class T, class Query>
  Result<T> QueryLog(Query query);
  Status CheckTables(sqlite::Connection& connection);

  std::string path_;
  std::atomic<bool> ready_ = false;  // once true, the tables are complete and stay so
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<sqlite::Connection>> idle_;
  int open_ = 0;
};

inline constexpr uint64_t kEventsPerScan = 4'096;

// The most connections that a Reader opens; more queries wait.
inline constexpr int kReadConnections = 8;

}  // namespace attune::server
