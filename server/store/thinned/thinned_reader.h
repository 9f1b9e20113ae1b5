#pragma once

#include <string>

#include "base/result.h"
#include "server/store/reader.h"
#include "server/store/sqlite.h"

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

}  // namespace attune::server
