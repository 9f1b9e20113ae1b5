#pragma once

#include <array>
#include <cstdint>
#include <string>

// The form of what is derived from the log.
namespace attune::server {

// How one set of tables is told from another in the same file. Statements of the projection have
// `@` where the prefix belongs (sqlite::Connection::SetTablePrefix).
struct TableNames {
  std::string prefix;  // of tables
  std::string suffix;  // of indexes and triggers, which keep their names when tables are renamed
};

// Makes the tables for people (docs/reference/database.md) and the indices of what is measured,
// empty, in place of those there are; then the views.
std::string TablesSql(const TableNames& names = {});
std::string ViewsSql();

// Differs if another version of Attune defines or fills the tables differently.
int64_t TablesForm();

// An expression for the time that people see of an event: the time of the log, and the offset that
// the table `clock` has for it. `events` is the name or alias of the table of events in the
// statement.
std::string ShownTimeSql(const std::string& events);

// The tables that TablesSql makes, without the two that describe them: `behind` has a row while
// some rows of trials know the log only up to its `seq`; `unshown` has the events that the tables
// could not take, and whether to `retry` when the server starts.
inline constexpr std::array kDerivedTables = {
    "sweeps",   "policies",     "trials",       "attempts",       "decisions",
    "clones",   "checkpoints",  "executors",    "front",          "report_index",
    "requests", "trial_counts", "logged_index", "logged_metrics", "clock"};

// A table with rows of sweeps, by a column `sweep`, and the columns that identify a row.
struct SweepTable {
  const char* name;
  const char* key;
};

// All of them but `sweeps` itself.
inline constexpr SweepTable kSweepTables[] = {
    {"trials", "sweep, number"},
    {"trial_counts", "sweep, state"},
    {"requests", "sweep, key"},
    {"attempts", "sweep, trial, number"},
    {"policies", "sweep, seq"},
    {"decisions", "seq"},
    {"clones", "seq"},
    {"front", "seq"},
    {"checkpoints", "sweep, trial, step, attempt"},
    {"report_index", "sweep, trial, seq"},
    {"logged_index", "sweep, trial, seq"},
    {"logged_metrics", "sweep, name"},
};

// Raise it if projection.cc fills the same tables differently. Servers then rebuild them.
inline constexpr int kTablesRevision = 2;

// Of the metrics that a sweep's trials log so many have a name there; others are in the log alone.
inline constexpr size_t kLoggedMetricsMax = 1'000;

// An index that grows with every report would touch a page a trial in each batch. This one grows by
// so many events at once, in order of trials; what came after is few enough to look through.
inline constexpr uint64_t kCurveIndexEvery = 16'384;

}  // namespace attune::server
