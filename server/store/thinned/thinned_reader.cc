#include "server/store/thinned/thinned_reader.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "server/store/columns.h"
#include "server/store/curves.h"
#include "server/store/queries.h"
#include "server/store/thinned/curve_file.h"
#include "server/store/trials/trial_list.h"

namespace attune::server {
namespace {

// The most points that are read from the log for a range of steps, of all trials together.
constexpr size_t kLogPointsMax = 2'000'000;

// The points of both lists, by step. At the same step, a report counts.
std::vector<CurvePoint> Merge(const std::vector<CurvePoint>& reported,
                              const std::vector<CurvePoint>& logged) {
  std::vector<CurvePoint> merged;
  merged.reserve(reported.size() + logged.size());
  std::ranges::set_union(reported, logged, std::back_inserter(merged), {}, &CurvePoint::step,
                         &CurvePoint::step);
  return merged;
}

// ---- A range of steps, from the log --------------------------------------------------------

template <class Steps>
void AppendRange(const Steps& steps, const std::vector<double>& values,
                 const CurveSelection::Range& range, std::vector<CurvePoint>& points) {
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto step = static_cast<double>(steps[i]);
    if (step >= range.first_step && step <= range.last_step)
      points.push_back({step, RoundedValue(values[i])});
  }
}

ThinnedTrial ThinRange(const Curve& curve, const CurveSelection& selection) {
  std::vector<CurvePoint> reported;
  std::vector<CurvePoint> logged;
  AppendRange(curve.steps, curve.values, *selection.range, reported);
  AppendRange(curve.logged_steps, curve.logged_values, *selection.range, logged);
  ThinnedTrial trial{.trial = curve.trial,
                     .mixed = !reported.empty() && !logged.empty(),
                     .points = ThinPoints(Merge(reported, logged), selection.points),
                     .clones = curve.clones};
  for (const CurveSegment& segment : curve.segments)
    trial.segments.push_back({segment.attempt, static_cast<double>(segment.first_step.value)});
  return trial;
}

Result<ThinnedPage> ReadRange(sqlite::Connection& connection, const ThinnedQuery& query) {
  const CurveLimits limits{
      .points = kLogPointsMax, .time = query.limits.time, .stop = query.limits.stop};
  const auto curves =
      ReadCurvesOf(connection, query.sweep, query.metric, *query.selection.trials, limits);
  if (!curves.ok()) return curves.error();
  if (curves->next)
    return Invalid("trials: they have too many points for one answer; ask for fewer trials");
  ThinnedPage page{.seq = curves->seq};
  for (const Curve& curve : curves->trials) {
    ThinnedTrial trial = ThinRange(curve, query.selection);
    if (!trial.points.empty()) page.trials.push_back(std::move(trial));
  }
  return page;
}

// ---- The table -----------------------------------------------------------------------------

Error NotBuilt(const std::string& progress) {
  return {ErrorCode::kUnavailable,
          "the table of thinned curves is being built" + progress + "; try again in a moment"};
}

Error DamagedCurve() { return {ErrorCode::kCorrupt, "a thinned curve is damaged"}; }

// Opens the file, if it has ever contained the whole log.
Result<std::unique_ptr<sqlite::Connection>> OpenBuilt(sqlite::Connection& log,
                                                      const std::string& path) {
  auto file = OpenCurveFile(path, sqlite::Connection::Mode::kReadOnly);
  if (!file.ok()) return file.error();
  const auto followed = ReadFollowed(**file);
  if (!followed.ok()) return followed.error();
  if (followed->built) return file;
  const auto last = LastSeqOf(log);
  if (!last.ok()) return last.error();
  return NotBuilt(": " + std::to_string(followed->seq.value) + " of " + std::to_string(*last) +
                  " events of the log are done");
}

// The selected trials as a JSON list; nullopt: all trials.
Result<std::optional<std::string>> SelectedTrials(sqlite::Connection& log,
                                                  const ThinnedQuery& query) {
  const CurveSelection& selection = query.selection;
  if (selection.trials) return std::optional(ListOf(*selection.trials));
  if (!selection.best) return std::optional<std::string>();
  const auto goal = ReadGoal(log, query.sweep);
  if (!goal.ok()) return goal.error();
  sqlite::Rows rows = log.Query(
      std::string("SELECT number FROM trials WHERE sweep = ? AND best IS NOT NULL ORDER BY best ") +
          (goal->maximises ? "DESC" : "ASC") + ", number LIMIT ?",
      query.sweep.value, *selection.best);
  std::vector<TrialNumber> best;
  while (rows.Next()) best.push_back(TrialNumberAt(rows, 0));
  if (!rows.status().ok()) return rows.status().error();
  return std::optional(ListOf(best));
}

// Reads the rows of the table trial by trial.
class TablePage {
 public:
  TablePage(const ThinnedQuery& query, ThinnedPage& page) : query_(query), page_(page) {}

  Status Read(sqlite::Rows& rows) {
    while (rows.Next()) {
      const TrialNumber number = TrialNumberAt(rows, 0);
      if (number != number_) {
        if (!StartNext(number)) return {};
        if (query_.limits.stop.stop_requested()) return Cancelled();
      }
      auto curve = ThinnedCurve::FromBytes(rows.Bytes(2));
      if (!curve) return DamagedCurve();
      (rows.Integer(1) != 0 ? logged_ : reported_) = *std::move(curve);
    }
    Finish();
    return rows.status();
  }

 private:
  // Ends the curve before this trial. Returns false if the page is full.
  bool StartNext(TrialNumber number) {
    Finish();
    const bool full = points_ >= query_.limits.points ||
                      std::chrono::steady_clock::now() - begun_ > query_.limits.time;
    if (full && !page_.trials.empty()) {
      page_.next = number;
      return false;
    }
    number_ = number;
    return true;
  }

  void Finish() {
    if (!number_) return;
    ThinnedTrial trial{
        .trial = *number_,
        .mixed = !reported_.points().empty() && !logged_.points().empty(),
        .points = ThinPoints(Merge(reported_.points(), logged_.points()), query_.selection.points),
        .segments = reported_.segments()};
    points_ += trial.points.size();
    page_.trials.push_back(std::move(trial));
    number_.reset();
    reported_ = {};
    logged_ = {};
  }

  const ThinnedQuery& query_;
  ThinnedPage& page_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::optional<TrialNumber> number_;  // the trial of the curves below
  ThinnedCurve reported_;
  ThinnedCurve logged_;
  size_t points_ = 0;
};

// Calls `read` with the file. If the file is missing or damaged, the server builds it again.
template <class T>
Result<T> FromTable(sqlite::Connection& log, const std::string& database,
                    const std::function<Result<T>(sqlite::Connection& file)>& read) {
  const std::string path = CurveFileOf(database);
  const auto file = OpenBuilt(log, path);
  Result<T> found = file.ok() ? read(**file) : Result<T>(file.error());
  if (found.ok()) return found;
  if (found.error().code == ErrorCode::kCorrupt) RemoveCurveFile(path);
  return found.error().code == ErrorCode::kUnavailable ? found : NotBuilt("");
}

Result<ThinnedPage> ReadTable(sqlite::Connection& file, const std::optional<std::string>& selected,
                              const ThinnedQuery& query) {
  sqlite::Transaction snapshot(file, sqlite::Transaction::Kind::kRead);
  if (!snapshot.status().ok()) return snapshot.status().error();
  const auto followed = ReadFollowed(file);
  if (!followed.ok()) return followed.error();
  ThinnedPage page{.seq = followed->seq};
  const std::string sql =
      "SELECT trial, logged, points FROM curves WHERE sweep = ? AND metric = ? AND trial " +
      std::string(selected ? "IN (SELECT value FROM json_each(?))" : ">= ?") +
      " ORDER BY trial, logged";
  sqlite::Rows rows =
      selected ? file.Query(sql, query.sweep.value, query.metric, *selected)
               : file.Query(sql, query.sweep.value, query.metric, query.selection.first.value);
  if (Status read = TablePage(query, page).Read(rows); !read.ok()) return read.error();
  return page;
}

}  // namespace

Result<ThinnedPage> ReadThinned(sqlite::Connection& connection, const std::string& database,
                                const ThinnedQuery& query) {
  if (Status known = CheckSweep(connection, query.sweep); !known.ok()) return known.error();
  if (query.selection.range) return ReadRange(connection, query);
  const auto selected = SelectedTrials(connection, query);
  if (!selected.ok()) return selected.error();

  auto page = FromTable<ThinnedPage>(connection, database, [&](sqlite::Connection& file) {
    return ReadTable(file, *selected, query);
  });
  if (!page.ok()) return page.error();
  const Status added = AddClones(connection, query.sweep, page->seq, page->trials);
  if (!added.ok()) return added.error();
  return page;
}

Status ReadThinnedPoints(sqlite::Connection& connection, const std::string& database, SweepId sweep,
                         const std::string& metric,
                         const std::function<void(TrialNumber, const CurvePoint&)>& add,
                         const std::stop_token& stop) {
  return FromTable<void>(connection, database, [&](sqlite::Connection& file) -> Status {
    sqlite::Rows rows =
        file.Query("SELECT trial, points FROM curves WHERE sweep = ? AND metric = ? ORDER BY trial",
                   sweep.value, metric);
    while (rows.Next()) {
      if (stop.stop_requested()) return Cancelled();
      const auto curve = ThinnedCurve::FromBytes(rows.Bytes(1));
      if (!curve) return DamagedCurve();
      for (const CurvePoint& point : curve->points()) add(TrialNumberAt(rows, 0), point);
    }
    return rows.status();
  });
}

}  // namespace attune::server
