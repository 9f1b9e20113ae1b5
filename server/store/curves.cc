#include "server/store/curves.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "server/store/columns.h"
#include "server/store/event_log.h"
#include "server/store/measured_form.h"
#include "server/store/queries.h"
#include "server/store/thinned/thinned_reader.h"

namespace attune::server {
namespace {

struct Point {
  uint32_t attempt = 0;
  double step = 0;
  double value = 0;
};

std::optional<Point> PointAt(const AttemptId& attempt, double step, const Metrics& metrics,
                             std::string_view metric) {
  const auto found = metrics.find(metric);
  if (found == metrics.end()) return std::nullopt;
  return Point{attempt.number, step, found->second};
}

// The value of one metric in a report or in logged metrics, if it has one. Curves read all events
// of a sweep, so the other metrics are skipped.
Result<std::optional<Point>> PointOf(const sqlite::Rows& rows, std::string_view metric) {
  const bool is_report = rows.Text(4) == TrialReported::kRow.info.kind;
  std::optional<Point> point;
  MeasuredScanner scanner(rows.Text(6));
  while (scanner.NextMetric()) {
    if (scanner.name() != metric) continue;
    const double step = is_report ? static_cast<double>(scanner.count()) : scanner.real();
    point = {scanner.attempt(), step, scanner.value()};
  }
  if (scanner.ok()) return point;

  const auto event = EventOf(rows);  // not in the form that the scanner reads
  if (!event.ok()) return event.error();
  if (const auto* logged = std::get_if<MetricsLogged>(&event->fact))
    return PointAt(logged->attempt, logged->step, logged->metrics, metric);
  const auto& [attempt, report] = std::get<TrialReported>(event->fact);
  return PointAt(attempt, static_cast<double>(report.step.value), report.metrics, metric);
}

// The trials from `first` on, or those of a list (ListOf).
struct TrialChoice {
  TrialNumber first = {};
  std::optional<std::string> listed = {};
};

std::string EventsSql(const std::string& view, const std::string& condition) {
  return "SELECT seq, sweep, trial, time, kind, version, payload FROM " + view +
         " WHERE sweep = ? AND " + condition + " ORDER BY trial, seq";
}

// The events of one view that may contain points of a metric, ordered by trial and then by time.
class PointSource {
 public:
  PointSource(sqlite::Connection& connection, const std::string& view, SweepId sweep,
              const TrialChoice& trials, std::string_view metric)
      : rows_(
            trials.listed
                ? connection.Query(EventsSql(view, "trial IN (SELECT value FROM json_each(?))"),
                                   sweep.value, *trials.listed)
                : connection.Query(EventsSql(view, "trial >= ?"), sweep.value, trials.first.value)),
        metric_(metric) {
    Advance();
  }

  // The trial of the next event. Nullopt: no event is left, or status() has an error.
  std::optional<TrialNumber> trial() const { return trial_; }
  const Status& status() const { return rows_.status(); }

  // The next event's point, if it has one.
  Result<std::optional<Point>> Take() {
    auto point = PointOf(rows_, metric_);
    Advance();
    return point;
  }

 private:
  void Advance() {
    trial_.reset();
    if (rows_.Next()) trial_ = TrialNumberAt(rows_, 2);
  }

  sqlite::Rows rows_;
  const std::string_view metric_;
  std::optional<TrialNumber> trial_;
};

Result<bool> IsLogged(sqlite::Connection& connection, SweepId sweep, const std::string& metric) {
  sqlite::Rows rows = connection.Query("SELECT 1 FROM logged_metrics WHERE sweep = ? AND name = ?",
                                       sweep.value, metric);
  const bool found = rows.Next();
  if (!rows.status().ok()) return rows.status().error();
  return found;
}

// The step from which an attempt resumed; 0: it began from the start.
Result<int64_t> ResumedFrom(sqlite::Connection& connection, const TrialId& trial,
                            uint32_t attempt) {
  sqlite::Rows rows = connection.Query(
      "SELECT resumed_from FROM attempts WHERE sweep = ? AND trial = ? AND number = ?",
      trial.sweep.value, trial.number.value, attempt);
  const int64_t step = rows.Next() && !rows.Null(0) ? rows.Integer(0) : 0;
  if (!rows.status().ok()) return rows.status().error();
  return step;
}

// Adds the reports of one trial to its curve, in order of time.
class ReportedCurve {
 public:
  ReportedCurve(sqlite::Connection& connection, SweepId sweep, Curve& curve)
      : connection_(connection), trial_(sweep, curve.trial), curve_(curve) {}

  Status Add(const Point& point) {
    const auto step = static_cast<int64_t>(point.step);
    if (attempts_.empty() || point.attempt != attempt_) {
      const auto resumed = ResumedFrom(connection_, trial_, point.attempt);
      if (!resumed.ok()) return resumed.error();
      attempt_ = point.attempt;
      covered_ = *resumed;
    }
    // Replaces the points that earlier attempts reported after this one's last report.
    const auto first = std::ranges::upper_bound(curve_.steps, std::min(covered_, step - 1));
    const auto last = std::upper_bound(first, curve_.steps.end(), step);
    const auto from = first - curve_.steps.begin();
    const auto to = last - curve_.steps.begin();
    Replace(curve_.steps, from, to, step);
    Replace(curve_.values, from, to, point.value);
    Replace(attempts_, from, to, point.attempt);
    covered_ = step;
    return {};
  }

  void Finish() {
    for (size_t i = 0; i < attempts_.size(); ++i) {
      if (i == 0 || attempts_[i] != attempts_[i - 1])
        curve_.segments.push_back({attempts_[i], Step(curve_.steps[i])});
    }
  }

 private:
  template <class T>
  static void Replace(std::vector<T>& list, ptrdiff_t from, ptrdiff_t to, T by) {
    list.erase(list.begin() + from, list.begin() + to);
    list.insert(list.begin() + from, by);
  }

  sqlite::Connection& connection_;
  const TrialId trial_;
  Curve& curve_;
  std::vector<uint32_t> attempts_;  // the attempt of each step of the curve
  uint32_t attempt_ = 0;            // of the last report
  int64_t covered_ = 0;             // the last step that attempt_ covers
};

void AddLogged(Curve& curve, const Point& point) {
  // An attempt that resumes from an earlier step logs the later ones again.
  while (!curve.logged_steps.empty() && curve.logged_steps.back() >= point.step) {
    curve.logged_steps.pop_back();
    curve.logged_values.pop_back();
  }
  curve.logged_steps.push_back(point.step);
  curve.logged_values.push_back(point.value);
}

// Reads the curves of one page.
class PageOfCurves {
 public:
  PageOfCurves(sqlite::Connection& connection, SweepId sweep, const CurveLimits& limits,
               Curves& curves)
      : connection_(connection), sweep_(sweep), limits_(limits), curves_(curves) {}

  Status Read(PointSource& reports, PointSource* logged) {
    for (;;) {
      const auto trial = EarlierOf(reports.trial(), logged ? logged->trial() : std::nullopt);
      if (!trial) break;
      Curve curve{.trial = *trial};
      ReportedCurve reported(connection_, sweep_, curve);
      Status read =
          ReadTrial(reports, *trial, [&](const Point& point) { return reported.Add(point); });
      reported.Finish();
      if (read.ok() && logged)
        read = ReadTrial(*logged, *trial, [&](const Point& point) {
          AddLogged(curve, point);
          return Status();
        });
      if (!read.ok()) return read;
      if (full_) return EndPageBefore(*trial);
      ++trials_;
      if (!curve.steps.empty() || !curve.logged_steps.empty())
        curves_.trials.push_back(std::move(curve));
    }
    return reports.status().ok() && logged ? logged->status() : reports.status();
  }

 private:
  static constexpr int kEventsPerCheck = 256;  // events between two looks at the clock

  static std::optional<TrialNumber> EarlierOf(std::optional<TrialNumber> a,
                                              std::optional<TrialNumber> b) {
    if (!a || !b) return a ? a : b;
    return std::min(*a, *b);
  }

  template <class Add>
  Status ReadTrial(PointSource& source, TrialNumber trial, Add add) {
    while (!full_ && source.trial() == trial) {
      const auto point = source.Take();
      if (!point.ok()) return point.error();
      if (*point) {
        if (Status added = add(**point); !added.ok()) return added;
        ++points_;
      }
      if (limits_.stop.stop_requested()) return Cancelled();
      full_ = points_ > limits_.points || (++events_ % kEventsPerCheck == 0 && IsLate());
    }
    return {};
  }

  bool IsLate() const { return std::chrono::steady_clock::now() - begun_ > limits_.time; }

  // Ends the page before this trial, because the page became full within it.
  Status EndPageBefore(TrialNumber trial) {
    if (trials_ == 0)
      return Invalid(
          "trial " + std::to_string(trial.value) +
          " has too many points for one answer; read them with `attune db export --what reports`");
    curves_.next = trial;
    return {};
  }

  sqlite::Connection& connection_;
  const SweepId sweep_;
  const CurveLimits& limits_;
  Curves& curves_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  size_t trials_ = 0;  // read trials, with or without points
  size_t points_ = 0;
  size_t events_ = 0;
  bool full_ = false;
};

// Sets the metric of each trial to its best value up to the step `last`. The trials and the values
// that are added must be ordered by trial.
class BestValues {
 public:
  BestValues(const Objective& metric, Step last, std::vector<TrialToCompare>& trials)
      : metric_(metric),
        last_(static_cast<double>(last.value)),
        trial_(trials.begin()),
        end_(trials.end()) {}

  // Whether values of this trial or of later ones are needed.
  bool Needs(TrialNumber number) {
    while (trial_ != end_ && trial_->result.trial < number) ++trial_;
    return trial_ != end_;
  }

  void Add(TrialNumber number, double step, double value) {
    if (!Needs(number) || trial_->result.trial != number || step > last_) return;
    const auto [best, is_first] = trial_->result.metrics.try_emplace(metric_.metric, value);
    if (!is_first && metric_.Better(value, best->second)) best->second = value;
  }

 private:
  const Objective& metric_;
  const double last_;
  std::vector<TrialToCompare>::iterator trial_;
  const std::vector<TrialToCompare>::iterator end_;
};

Status ReadBestValues(PointSource& source, BestValues best, const std::stop_token& stop) {
  while (const auto number = source.trial()) {
    if (!best.Needs(*number)) return {};
    const auto point = source.Take();
    if (!point.ok()) return point.error();
    if (stop.stop_requested()) return Cancelled();
    if (*point) best.Add(*number, (*point)->step, (*point)->value);
  }
  return source.status();
}

// Reads all reports of the trials.
Status ReadExactBestValues(sqlite::Connection& connection, SweepId sweep, const Objective& metric,
                           Step last, std::vector<TrialToCompare>& trials,
                           const std::stop_token& stop) {
  if (trials.empty()) return {};
  const auto is_logged = IsLogged(connection, sweep, metric.metric);
  if (!is_logged.ok()) return is_logged.error();
  for (const char* view : {"report_events", "logged_events"}) {
    if (view == std::string_view("logged_events") && !*is_logged) break;
    PointSource source(connection, view, sweep, {.first = trials.front().result.trial},
                       metric.metric);
    Status read = ReadBestValues(source, BestValues(metric, last, trials), stop);
    if (!read.ok()) return read;
  }
  return {};
}

Result<LoggedRow> LoggedOfRow(const sqlite::Rows& rows) {
  auto event = EventOf(rows);
  if (!event.ok()) return event.error();
  auto& fact = std::get<MetricsLogged>(event->fact);
  return LoggedRow{event->seq, event->time, fact.attempt.number, fact.step,
                   std::move(fact.metrics)};
}

Result<Curves> ReadChosen(sqlite::Connection& connection, SweepId sweep, const std::string& metric,
                          const TrialChoice& trials, const CurveLimits& limits) {
  if (Status known = CheckSweep(connection, sweep); !known.ok()) return known.error();
  const auto last = LastSeqOf(connection);
  if (!last.ok()) return last.error();
  const auto is_logged = IsLogged(connection, sweep, metric);
  if (!is_logged.ok()) return is_logged.error();

  Curves curves{.seq = EventSeq(static_cast<uint64_t>(*last))};
  PointSource reports(connection, "report_events", sweep, trials, metric);
  std::optional<PointSource> logged;
  if (*is_logged) logged.emplace(connection, "logged_events", sweep, trials, metric);
  Status read =
      PageOfCurves(connection, sweep, limits, curves).Read(reports, logged ? &*logged : nullptr);
  if (!read.ok()) return read.error();
  read = AddClones(connection, sweep, curves.seq, curves.trials);
  if (!read.ok()) return read.error();
  return curves;
}

}  // namespace

Result<Curves> ReadCurves(sqlite::Connection& connection, SweepId sweep, const std::string& metric,
                          TrialNumber first, const CurveLimits& limits) {
  return ReadChosen(connection, sweep, metric, {.first = first}, limits);
}

Result<Curves> ReadCurvesOf(sqlite::Connection& connection, SweepId sweep,
                            const std::string& metric, const std::vector<TrialNumber>& trials,
                            const CurveLimits& limits) {
  return ReadChosen(connection, sweep, metric, {.listed = ListOf(trials)}, limits);
}

Status ReadClones(sqlite::Connection& connection, SweepId sweep, EventSeq last,
                  const std::function<void(TrialNumber, const Clone&)>& add) {
  sqlite::Rows rows = connection.Query(
      "SELECT trial, donor, step FROM clones WHERE sweep = ? AND seq <= ? ORDER BY seq",
      sweep.value, last.value);
  while (rows.Next()) add(TrialNumberAt(rows, 0), {TrialNumberAt(rows, 1), Step(rows.Integer(2))});
  return rows.status();
}

std::string ListOf(const std::vector<TrialNumber>& trials) {
  std::string list;
  for (const TrialNumber trial : trials)
    list += (list.empty() ? "[" : ",") + std::to_string(trial.value);
  return list.empty() ? "[]" : list + "]";
}

Result<ComparedTrials> ReadCompared(sqlite::Connection& connection, SweepId sweep,
                                    const std::string& database, const Objective& metric,
                                    const CommonSteps& steps, const std::stop_token& stop) {
  if (Status known = CheckSweep(connection, sweep); !known.ok()) return known.error();
  auto trials = ReadTrialsToCompare(connection, sweep);
  if (!trials.ok()) return trials.error();
  std::vector<TrialProgress> progress;
  for (const TrialToCompare& trial : *trials)
    progress.push_back({trial.result.step, trial.is_over});
  ComparedTrials compared{.step = CommonStep(progress, steps.rungs, steps.last), .results = {}};
  std::erase_if(*trials, [&](const TrialToCompare& trial) {
    const TrialResult& result = trial.result;
    return result.step < compared.step && !result.complete && !trial.counts_as_worst;
  });

  int64_t steps_of_all = 0;
  for (const TrialToCompare& trial : *trials) steps_of_all += trial.result.step.value;
  Status read;
  if (steps_of_all <= steps.exact_steps_max) {
    read = ReadExactBestValues(connection, sweep, metric, compared.step, *trials, stop);
  } else {
    BestValues best(metric, compared.step, *trials);
    const auto add = [&best](TrialNumber trial, const CurvePoint& point) {
      best.Add(trial, point.step, point.value);
    };
    read = ReadThinnedPoints(connection, database, sweep, metric.metric, add, stop);
  }
  if (!read.ok()) return read.error();
  for (TrialToCompare& trial : *trials) {
    const bool is_worst = trial.counts_as_worst && trial.result.step < compared.step;
    if (is_worst) trial.result.metrics.clear();
    compared.results.push_back(std::move(trial.result));
  }
  return compared;
}

Result<std::vector<LoggedRow>> ReadLogged(sqlite::Connection& connection, const TrialId& trial,
                                          EventSeq after, int limit) {
  sqlite::Rows rows = connection.Query(
      "SELECT seq, sweep, trial, time, kind, version, payload FROM logged_events"
      " WHERE sweep = ? AND trial = ? AND seq > ? ORDER BY seq LIMIT ?",
      trial.sweep.value, trial.number.value, after.value, limit);
  std::vector<LoggedRow> logged;
  while (rows.Next()) {
    auto row = LoggedOfRow(rows);
    if (!row.ok()) return row.error();
    logged.push_back(std::move(row).value());
  }
  if (!rows.status().ok()) return rows.status().error();
  return logged;
}

}  // namespace attune::server
