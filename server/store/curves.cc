#include "server/store/curves.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "server/store/event_log.h"
#include "server/store/measured_form.h"
#include "server/store/queries.h"

namespace attune::server {
namespace {

struct Point {
  double step = 0;
  double value = 0;
};

std::optional<Point> PointAt(double step, const Metrics& metrics, std::string_view metric) {
  const auto found = metrics.find(metric);
  if (found == metrics.end()) return std::nullopt;
  return Point{step, found->second};
}

// The value of one metric in what was reported or logged, if it is there. Curves read all of a
// sweep, so nothing else of it is kept.
Result<std::optional<Point>> PointOf(const sqlite::Rows& rows, std::string_view metric) {
  const bool is_report = rows.Text(4) == TrialReported::kRow.info.kind;
  std::optional<Point> point;
  MeasuredScanner scanner(rows.Text(6));
  while (scanner.NextMetric()) {
    if (scanner.name() != metric) continue;
    point = {is_report ? static_cast<double>(scanner.count()) : scanner.real(), scanner.value()};
  }
  if (scanner.ok()) return point;

  const auto event = EventOf(rows);  // written otherwise
  if (!event.ok()) return event.error();
  if (const auto* logged = std::get_if<MetricsLogged>(&event->fact))
    return PointAt(logged->step, logged->metrics, metric);
  const Report& report = std::get<TrialReported>(event->fact).report;
  return PointAt(static_cast<double>(report.step.value), report.metrics, metric);
}

// Calls `take` with each point of the metric among the events of a view, in order of trials and of
// time.
template <class Take>
Status ForEachPoint(sqlite::Connection& connection, const std::string& view, SweepId sweep,
                    const std::string& metric, Take take) {
  sqlite::Rows rows =
      connection.Query("SELECT seq, sweep, trial, time, kind, version, payload FROM " + view +
                           " WHERE sweep = ? ORDER BY trial, seq",
                       sweep.value);
  while (rows.Next()) {
    const auto point = PointOf(rows, metric);
    if (!point.ok()) return point.error();
    if (*point) take(TrialNumber(static_cast<uint32_t>(rows.Integer(2))), **point);
  }
  return rows.status();
}

// Of curves that are in order of their trials.
Curve& CurveOf(TrialNumber trial, std::vector<Curve>& curves) {
  const auto place = std::ranges::lower_bound(curves, trial, {}, &Curve::trial);
  if (place != curves.end() && place->trial == trial) return *place;
  return *curves.insert(place, {.trial = trial});
}

Result<bool> IsLogged(sqlite::Connection& connection, SweepId sweep, const std::string& metric) {
  sqlite::Rows rows = connection.Query("SELECT 1 FROM logged_metrics WHERE sweep = ? AND name = ?",
                                       sweep.value, metric);
  const bool found = rows.Next();
  if (!rows.status().ok()) return rows.status().error();
  return found;
}

Status AddLogged(sqlite::Connection& connection, SweepId sweep, const std::string& metric,
                 std::vector<Curve>& curves) {
  const auto is_logged = IsLogged(connection, sweep, metric);
  if (!is_logged.ok()) return is_logged.error();
  if (!*is_logged) return {};
  return ForEachPoint(
      connection, "logged_events", sweep, metric, [&](TrialNumber trial, const Point& point) {
        Curve& curve = CurveOf(trial, curves);
        // An attempt that goes on from an earlier step logs anew from there on.
        while (!curve.logged_steps.empty() && curve.logged_steps.back() >= point.step) {
          curve.logged_steps.pop_back();
          curve.logged_values.pop_back();
        }
        curve.logged_steps.push_back(point.step);
        curve.logged_values.push_back(point.value);
      });
}

// Likewise.
Status ReadClones(sqlite::Connection& connection, SweepId sweep, std::vector<Curve>& curves) {
  sqlite::Rows rows = connection.Query(
      "SELECT trial, donor, step FROM clones WHERE sweep = ? ORDER BY seq", sweep.value);
  while (rows.Next()) {
    const TrialNumber trial(static_cast<uint32_t>(rows.Integer(0)));
    const auto curve = std::ranges::lower_bound(curves, trial, {}, &Curve::trial);
    if (curve == curves.end() || curve->trial != trial) continue;
    curve->clones.push_back(
        {TrialNumber(static_cast<uint32_t>(rows.Integer(1))), Step(rows.Integer(2))});
  }
  return rows.status();
}

Result<LoggedRow> LoggedOfRow(const sqlite::Rows& rows) {
  auto event = EventOf(rows);
  if (!event.ok()) return event.error();
  auto& fact = std::get<MetricsLogged>(event->fact);
  return LoggedRow{event->seq, event->time, fact.attempt.number, fact.step,
                   std::move(fact.metrics)};
}

}  // namespace

Result<Curves> ReadCurves(sqlite::Connection& connection, SweepId sweep,
                          const std::string& metric) {
  if (Status known = CheckSweep(connection, sweep); !known.ok()) return known.error();
  const auto last = LastSeqOf(connection);
  if (!last.ok()) return last.error();
  Curves curves{.seq = EventSeq(static_cast<uint64_t>(*last))};
  Status read = ForEachPoint(connection, "report_events", sweep, metric,
                             [&](TrialNumber trial, const Point& point) {
                               Curve& curve = CurveOf(trial, curves.trials);
                               curve.steps.push_back(static_cast<int64_t>(point.step));
                               curve.values.push_back(point.value);
                             });
  if (read.ok()) read = AddLogged(connection, sweep, metric, curves.trials);
  if (read.ok()) read = ReadClones(connection, sweep, curves.trials);
  if (!read.ok()) return read.error();
  return curves;
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
