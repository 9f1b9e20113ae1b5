#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/store/reader.h"
#include "server/store/sqlite.h"

// What is measured over steps, of reports and between them.
namespace attune::server {

// See Reader::CurvesOf.
Result<Curves> ReadCurves(sqlite::Connection& connection, SweepId sweep, const std::string& metric,
                          TrialNumber first, const CurveLimits& limits);
Result<std::vector<LoggedRow>> ReadLogged(sqlite::Connection& connection, const TrialId& trial,
                                          EventSeq after, int limit);

}  // namespace attune::server
