#pragma once

#include <algorithm>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/store/reader.h"
#include "server/store/sqlite.h"

// Reads metrics over steps: those of reports, and those that are logged between reports.
namespace attune::server {

// See Reader::Curves.
Result<Curves> ReadCurves(sqlite::Connection& connection, SweepId sweep, const std::string& metric,
                          TrialNumber first, const CurveLimits& limits);
// The same for these trials only. `trials` must be sorted.
Result<Curves> ReadCurvesOf(sqlite::Connection& connection, SweepId sweep,
                            const std::string& metric, const std::vector<TrialNumber>& trials,
                            const CurveLimits& limits);
// Calls `add` with the clones of the sweep up to event `last`, in order of time.
Status ReadClones(sqlite::Connection& connection, SweepId sweep, EventSeq last,
                  const std::function<void(TrialNumber, const Clone&)>& add);
// Adds these clones to the curves of their trials. `curves` must be sorted by trial.
template <class TrialCurve>
Status AddClones(sqlite::Connection& connection, SweepId sweep, EventSeq last,
                 std::vector<TrialCurve>& curves) {
  return ReadClones(connection, sweep, last, [&](TrialNumber trial, const Clone& clone) {
    const auto found = std::ranges::lower_bound(curves, trial, {}, &TrialCurve::trial);
    if (found != curves.end() && found->trial == trial) found->clones.push_back(clone);
  });
}
// The numbers as a JSON list, for `IN (SELECT value FROM json_each(?))`.
std::string ListOf(const std::vector<TrialNumber>& trials);
// See Reader::CompareTrials. `database` is the path of the database.
Result<ComparedTrials> ReadCompared(sqlite::Connection& connection, SweepId sweep,
                                    const std::string& database, const Objective& metric,
                                    const CommonSteps& steps, const std::stop_token& stop);
Result<std::vector<LoggedRow>> ReadLogged(sqlite::Connection& connection, const TrialId& trial,
                                          EventSeq after, int limit);

}  // namespace attune::server
