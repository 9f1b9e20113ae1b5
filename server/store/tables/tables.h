#pragma once

#include <array>
#include <cstdint>
#include <string>

// The definitions of the tables that derive from the log.
namespace attune::server {

// The names of one set of tables in a file. Statements of the projection contain `@` at the place
// of the prefix (sqlite::Connection::SetTablePrefix).
struct TableNames {
  std::string prefix;  // prefix of tables
  // suffix of indexes and triggers, which keep their names when tables are renamed
  std::string suffix;
};

// The SQL that creates the tables for people (docs/reference/database.md) and the indices of
// measured values, empty and in place of existing ones; and the SQL that creates the views.
std::string TablesSql(const TableNames& names = {});
std::string ViewsSql();

// A number that differs if another version of Attune defines or fills the tables differently.
int64_t TablesForm();

// An SQL expression for the time that people see of an event: the log's time plus the offset from
// the table `clock`. `events` is the name or alias of the table of events in the statement.
std::string ShownTimeSql(const std::string& events);

// The tables that TablesSql creates, except two that describe them. `behind` has a row while some
// rows of trials know the log only up to its `seq`. `unshown` contains the events that the tables
// could not take, and whether the next start must `retry` them.
inline constexpr std::array kDerivedTables = {
    "sweeps",       "policies",       "trials", "attempts",     "decisions",   "clones",
    "checkpoints",  "executors",      "front",  "report_index", "requests",    "trial_counts",
    "logged_index", "logged_metrics", "clock",  "activity",     "environments"};

// A table whose rows belong to sweeps (column `sweep`), and the columns that identify a row.
struct SweepTable {
  const char* name;
  const char* key;
};

// All such tables except `sweeps`.
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
    {"activity", "seq"},
    {"environments", "sweep, executor, seq"},
};

// Raise it if projection.cc fills the same tables differently. Servers then rebuild them.
inline constexpr int kTablesRevision = 2;

// The most names of logged metrics per sweep in the table. Further metrics are only in the log.
inline constexpr size_t kLoggedMetricsMax = 1'000;

// The indices of measured values grow by this many events at once, in order of trials. Adding each
// report separately would touch a page per trial in each batch. The events after the last index
// entry are few enough to scan.
inline constexpr uint64_t kCurveIndexEvery = 16'384;

}  // namespace attune::server
