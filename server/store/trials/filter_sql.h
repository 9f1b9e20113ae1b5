#pragma once

#include <string>

#include "server/store/trials/trial_columns.h"
#include "server/store/trials/trial_filter.h"

namespace attune::server {

// An SQL condition on rows of the table `trials` that is true or false, and never NULL.
std::string FilterSql(const TrialFilter& filter, const TrialGoal& goal, SqlParameters& parameters);

}  // namespace attune::server
