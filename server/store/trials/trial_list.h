#pragma once

#include "base/result.h"
#include "server/store/reader.h"
#include "server/store/sqlite.h"
#include "server/store/trials/trial_columns.h"

namespace attune::server {

// Reads the first objective of a sweep. kNotFound: no such sweep.
Result<TrialGoal> ReadGoal(sqlite::Connection& connection, SweepId sweep);

// Reads a page of a sweep's trials. The connection sees one snapshot. kNotFound: no such sweep.
Result<TrialPage> ReadTrialPage(sqlite::Connection& connection, SweepId sweep,
                                const TrialQuery& query);

}  // namespace attune::server
