#pragma once

#include <string>
#include <string_view>

#include "server/store/trials/trial_query.h"
#include "server/store/trials/trial_sql.h"

// The values of trials that a filter or an order can name, as SQL on the table `trials`.
namespace attune::server {

// The first objective of a sweep.
struct TrialGoal {
  std::string metric;
  bool maximises = false;
};

enum class ColumnKind {
  kNumber,
  kText,
  kTime,   // text in the format of FormatTime, which has the order of time
  kMember  // a value of a configuration or a metric: a number or a text
};

// An SQL expression for a value; NULL: the trial has none. Booleans are the texts true and false.
// Infinite metrics are infinite numbers, and metrics that are NaN are the text nan.
struct TrialValue {
  std::string sql;
  ColumnKind kind;
};

// The value that a filter calls `name`: a column, config.NAME, metrics.NAME, the metric of the
// sweep (its best value), or else a parameter or metric.
TrialValue ValueNamed(std::string_view name, const TrialGoal& goal, SqlParameters& parameters);

// The key by which an order sorts trials.
struct SortKey {
  std::string sql;          // NULL: the trial has no value, so it comes last
  bool descending = false;  // whether the largest key comes first
  bool may_miss = true;     // whether trials may have no value
  bool slow = false;        // whether computing the key reads JSON
};

// REQUIRES: the order is of ParseTrialOrder.
SortKey KeyOf(const TrialOrder& order, const TrialGoal& goal, SqlParameters& parameters);

}  // namespace attune::server
