#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/analysis/cost.h"
#include "core/analysis/importance.h"
#include "core/log/event.h"
#include "server/store/rows.h"
#include "server/store/sqlite.h"
#include "server/store/trials/trial_query.h"

namespace attune::server {

// Queries on an Attune database, each on a consistent snapshot of its own (but see HoldSnapshot).
// Any thread. A query uses one of a few read-only connections and never blocks the writer.
class Reader {
 public:
  // Makes a reader that opens the database at the first query.
  static std::unique_ptr<Reader> MakeLazy(const std::string& path);

  // Opens the database now. REQUIRES: a SqliteStore has created or migrated the file.
  static Result<std::unique_ptr<Reader>> Open(const std::string& path);
  ~Reader();

  // Calls `work`. All queries of this thread during the call see the same snapshot, except thinned
  // curves, which are in another file. Returns why there is no snapshot; `work` was not called
  // then. REQUIRES: the thread holds no snapshot.
  Status HoldSnapshot(const std::function<void()>& work);

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
  Result<SweepFile> FileOf(SweepId id);       // kNotFound
  Result<SweepSpec> FirstSpecOf(SweepId id);  // before any edit. kNotFound
  // The digests of the code of all sweeps and trials, and perhaps other texts of sweep files that
  // are digests.
  Result<std::set<std::string>> CodeDigests();

  // kNotFound: no such sweep. kUnavailable: the query takes longer than kTrialsTime.
  Result<TrialPage> Trials(SweepId sweep, const TrialQuery& query);
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
  // See ReadEnvironment in trials/attempt_environment.h.
  Result<AttemptEnvironment> Environment(const TrialId& id, std::optional<uint32_t> attempt);

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

  // What the attempts of each trial took, by number, for CostOf. kNotFound: no such sweep.
  Result<std::vector<TrialUse>> Uses(SweepId sweep);
  // The attempts that held slots between two times, at most `limit` of them: first those that still
  // hold slots, then the others, the newest end first. With an executor, only ranks on it. Attempts
  // of deleted sweeps are missing.
  Result<HeldPage> HeldSlots(Time since, Time until, const std::string& executor, size_t limit);
  Result<std::vector<JoinRow>> Joins();
  // The trials of a sweep with their best value of a metric up to a common step (CommonStep in
  // core/analysis/importance.h), by number. The metric may be reported or logged. A trial that was
  // stopped or has failed before that step has no value, and neither has one without a value up to
  // that step. Trials that are running, paused or killed before that step are left out.
  //
  // If the trials have many steps (CommonSteps::exact_steps_max), the values are those of the
  // thinned curves. A trial that has reported after the common step can then lack a value of its
  // last steps before it.
  // kNotFound: no such sweep. kUnavailable: stopped, or the thinned curves are being built.
  Result<ComparedTrials> CompareTrials(SweepId sweep, const Objective& metric,
                                       const CommonSteps& steps, const std::stop_token& stop = {});
  // Groups the failed and lost attempts of a sweep by message. kNotFound: no such sweep.
  Result<Failures> GroupFailures(SweepId sweep);
  // The clones and promotions of a sweep in events after `after`, at most `limit` of them.
  // kNotFound: no such sweep.
  Result<std::vector<Branch>> Branches(SweepId sweep, EventSeq after, int limit);

  // The actions of users on a sweep in events before `before`, newest first, at most `limit` of
  // them. kNotFound: no such sweep.
  Result<std::vector<UserAction>> Activity(SweepId sweep, std::optional<EventSeq> before,
                                           int limit);

  // The curves of a metric in reports and logged values, from trial `first` on. kNotFound: no such
  // sweep. kInvalid: a single trial exceeds the limits. kUnavailable: stopped.
  Result<Curves> MetricCurves(SweepId sweep, const std::string& metric,
                              TrialNumber first = TrialNumber(0), const CurveLimits& limits = {});
  // The thinned curves of a metric. kNotFound: no such sweep. kInvalid: the trials have too many
  // points in that range. kUnavailable: stopped, or the table of thinned curves is not built yet,
  // with the progress.
  Result<ThinnedPage> ThinnedCurves(SweepId sweep, const std::string& metric,
                                    const CurveSelection& selection,
                                    const CurveLimits& limits = {});
  // The metrics that the trial logged in events after `after`, at most `limit` of them.
  Result<std::vector<LoggedRow>> Logged(const TrialId& trial, EventSeq after, int limit);

  // Converts a time of the log at this event to the time that people see.
  Result<Time> DisplayTime(EventSeq seq, Time time);

  // The next events of seq > after, at most `limit`, with the times that people see. With a sweep,
  // only its events and those without a sweep. Considers at most kEventsPerScan events, so that a
  // filter does not make a read slow.
  Result<EventsPage> EventsAfter(EventSeq after, std::optional<SweepId> sweep, int limit);
  Result<EventSeq> LastSeq();

  enum class EventSelection {
    kAll,
    // Those that say from which weights and with which configurations trials train: creations,
    // assignments, clones and promotions.
    kLineages,
  };
  // Calls `visit` with the events of a sweep in order, from its creation on, until it returns
  // false. kNotFound: no such sweep.
  Status Events(SweepId sweep, const std::function<bool(const Event&)>& visit,
                EventSelection selection = EventSelection::kAll);

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
