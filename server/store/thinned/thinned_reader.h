#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "server/store/reader.h"
#include "server/store/sqlite.h"
#include "server/store/thinned/thinned_curve.h"

namespace attune::server {

struct ThinnedQuery {
  SweepId sweep;
  const std::string& metric;
  const CurveSelection& selection;
  const CurveLimits& limits;
};

// See Reader::ThinnedCurves. `database` is the path of the database of `connection`.
Result<ThinnedPage> ReadThinned(sqlite::Connection& connection, const std::string& database,
                                const ThinnedQuery& query);

// Calls `add` for each point of the metric's thinned curves, trial by trial. kUnavailable: stopped,
// or the table is being built.
Status ReadThinnedPoints(sqlite::Connection& connection, const std::string& database, SweepId sweep,
                         const std::string& metric,
                         const std::function<void(TrialNumber, const CurvePoint&)>& add,
                         const std::stop_token& stop);

}  // namespace attune::server
