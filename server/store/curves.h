#pragma once

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
Result<std::vector<LoggedRow>> ReadLogged(sqlite::Connection& connection, const TrialId& trial,
                                          EventSeq after, int limit);

}  // namespace attune::server
