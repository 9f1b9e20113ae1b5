#include "server/store/trials/trial_list.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "server/store/columns.h"
#include "server/store/queries.h"
#include "server/store/trials/filter_sql.h"
#include "server/store/trials/trial_columns.h"
#include "server/store/trials/trial_sql.h"

namespace attune::server {
namespace {

// The SQL that finds the trials of a page, with the parameters of its conditions.
class TrialFinder {
 public:
  TrialFinder(sqlite::Connection& connection, SweepId sweep, const TrialQuery& query,
              const TrialGoal& goal)
      : connection_(connection), query_(query) {
    condition_ = "sweep = " + parameters_.Add(static_cast<int64_t>(sweep.value));
    if (query.filter) condition_ += " AND " + FilterSql(*query.filter, goal, parameters_);
    key_ = KeyOf(query.order, goal, parameters_);
  }

  // The number of trials that match the filter.
  Result<int64_t> Count() {
    return Number(query_.filter ? "SELECT count(*) FROM trials WHERE " + condition_
                                : "SELECT sum(trials) FROM trial_counts WHERE " + condition_);
  }

  // The positions of up to `limit` trials, in order.
  Result<std::vector<TrialPosition>> Find(int limit) {
    std::vector<TrialPosition> found;
    const bool is_after_values = query_.after && !query_.after->value;
    if (!is_after_values) {
      if (Status read = FindValues(limit, found); !read.ok()) return read.error();
    }
    if (key_.may_miss && std::ssize(found) < limit) {
      if (Status read = FindMissing(limit - static_cast<int>(found.size()), found); !read.ok())
        return read.error();
    }
    return found;
  }

 private:
  // Finds trials that have a value. A key that reads JSON is computed once for each trial: SQLite
  // does not merge a subquery with a LIMIT into the outer one.
  Status FindValues(int limit, std::vector<TrialPosition>& found) {
    SqlParameters parameters = parameters_;
    const std::string direction = key_.descending ? " DESC" : "";
    std::string sql = "SELECT number, sort_key FROM (SELECT number, " + key_.sql +
                      " AS sort_key FROM trials WHERE " + condition_ +
                      (key_.slow ? " LIMIT -1" : "") + ") WHERE sort_key IS NOT NULL";
    if (query_.after) {
      const std::string value = parameters.Add(*query_.after->value);
      const std::string number = parameters.Add(int64_t{query_.after->number.value});
      // The first condition lets SQLite begin at the position if the key has an index.
      const std::string beyond = key_.descending ? " < " : " > ";
      sql += " AND " + Key() + (key_.descending ? " <= " : " >= ") + value + " AND (" + Key() +
             beyond + value + " OR " + Key() + " = " + value + " AND number > " + number + ")";
    }
    sql += " ORDER BY " + Key() + direction + ", number LIMIT " + parameters.Add(int64_t{limit});
    sqlite::Rows rows = connection_.QueryOnce(sql, parameters.values());
    while (rows.Next()) {
      TrialPosition position{.value = {}, .number = TrialNumberAt(rows, 0)};
      if (rows.IsText(1)) {
        position.value = std::string(rows.Text(1));
      } else if (rows.IsInteger(1)) {
        position.value = rows.Integer(1);
      } else {
        position.value = rows.Real(1);
      }
      found.push_back(std::move(position));
    }
    return rows.status();
  }

  // Finds trials that have no value.
  Status FindMissing(int limit, std::vector<TrialPosition>& found) {
    SqlParameters parameters = parameters_;
    std::string sql =
        "SELECT number FROM trials WHERE " + condition_ + " AND " + key_.sql + " IS NULL";
    if (query_.after && !query_.after->value)
      sql += " AND number > " + parameters.Add(int64_t{query_.after->number.value});
    sql += " ORDER BY number LIMIT " + parameters.Add(int64_t{limit});
    sqlite::Rows rows = connection_.QueryOnce(sql, parameters.values());
    while (rows.Next()) found.push_back({.value = {}, .number = TrialNumberAt(rows, 0)});
    return rows.status();
  }

  // Texts compare without regard to case, as people expect of a sorted list.
  std::string Key() const { return key_.slow ? "sort_key COLLATE NOCASE" : "sort_key"; }

  Result<int64_t> Number(const std::string& sql) {
    sqlite::Rows rows = connection_.QueryOnce(sql, parameters_.values());
    const int64_t number = rows.Next() ? rows.Integer(0) : 0;
    if (!rows.status().ok()) return rows.status().error();
    return number;
  }

  sqlite::Connection& connection_;
  const TrialQuery& query_;
  SqlParameters parameters_;
  std::string condition_;
  SortKey key_;
};

// The event up to which every row is complete. The columns that reports change may be behind.
Result<EventSeq> CompleteSeq(sqlite::Connection& connection) {
  const auto seq =
      connection.Number("SELECT ifnull((SELECT seq FROM behind), (SELECT max(seq) FROM events))");
  if (!seq.ok()) return seq.error();
  return EventSeq(static_cast<uint64_t>(*seq));
}

}  // namespace

Result<TrialGoal> ReadGoal(sqlite::Connection& connection, SweepId sweep) {
  sqlite::Rows rows =
      connection.Query("SELECT metric, mode FROM sweeps WHERE sweep = ?", sweep.value);
  if (rows.Next())
    return TrialGoal{.metric = std::string(rows.Text(0)), .maximises = rows.Text(1) == "max"};
  if (!rows.status().ok()) return rows.status().error();
  return NoSweep(sweep);
}

Result<TrialPage> ReadTrialPage(sqlite::Connection& connection, SweepId sweep,
                                const TrialQuery& query) {
  const auto goal = ReadGoal(connection, sweep);
  if (!goal.ok()) return goal.error();
  TrialPage page;
  const auto seq = CompleteSeq(connection);
  if (!seq.ok()) return seq.error();
  page.seq = *seq;
  TrialFinder finder(connection, sweep, query, *goal);
  const auto total = finder.Count();
  if (!total.ok()) return total.error();
  page.total = *total;
  auto found = finder.Find(query.limit + 1);  // one more tells whether another page follows
  if (!found.ok()) return found.error();
  if (std::ssize(*found) > query.limit) {
    found->pop_back();
    page.next = found->back();
  }
  for (const TrialPosition& position : *found) {
    auto rows = ReadTrials(connection, sweep, position.number, 1);
    if (!rows.ok()) return rows.error();
    std::ranges::move(*rows, std::back_inserter(page.trials));
  }
  return page;
}

}  // namespace attune::server
