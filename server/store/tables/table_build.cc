#include "server/store/tables/table_build.h"

#include <string>
#include <vector>

#include "base/result.h"
#include "base/version.h"
#include "server/store/tables/tables.h"

namespace attune::server {
namespace {

std::vector<std::string> AllTables() {
  std::vector<std::string> tables(kDerivedTables.begin(), kDerivedTables.end());
  tables.insert(tables.end(), {"behind", "unshown"});
  return tables;
}

constexpr const char* kOtherSuffix = "_other";

// Returns the suffix, of two, that the indexes and triggers of the old tables do not use.
std::string UnusedSuffix(sqlite::Transaction& transaction) {
  const auto plain = transaction.connection().Number(
      "SELECT count(*) FROM sqlite_schema WHERE type IN ('index', 'trigger') AND sql IS NOT NULL"
      " AND substr(tbl_name, 1, 5) <> 'next_' AND substr(name, -6) <> '_other'");
  if (!plain.ok()) transaction.Fail(plain.error());
  return plain.ok() && *plain > 0 ? kOtherSuffix : "";
}

void WriteForm(sqlite::Transaction& transaction, int64_t form) {
  transaction.Run("DELETE FROM written_by");
  transaction.Run("INSERT INTO written_by (version, tables) VALUES (?, ?)", kVersion, form);
}

}  // namespace

Result<std::optional<EventSeq>> BuildPosition(sqlite::Connection& connection) {
  sqlite::Rows rows = connection.Query("SELECT seq FROM building");
  if (rows.Next()) return std::optional(EventSeq(static_cast<uint64_t>(rows.Integer(0))));
  if (!rows.status().ok()) return rows.status().error();
  return std::optional<EventSeq>();
}

void BeginBuild(sqlite::Transaction& transaction) {
  const auto same = transaction.connection().Number(
      "SELECT count(*) FROM building WHERE tables = " + std::to_string(TablesForm()));
  if (!same.ok()) return transaction.Fail(same.error());
  if (*same > 0) return;
  transaction.Execute(TablesSql({.prefix = kNextTables, .suffix = UnusedSuffix(transaction)}));
  transaction.Run("DELETE FROM building");
  transaction.Run("INSERT INTO building (seq, tables) VALUES (0, ?)", TablesForm());
  WriteForm(transaction, 0);
}

void SaveBuildPosition(sqlite::Transaction& transaction, EventSeq seq) {
  transaction.Run("UPDATE building SET seq = ?", seq.value);
}

// Drops the views first, because SQLite cannot rename a table while a view refers to a missing one.
void FinishBuild(sqlite::Transaction& transaction) {
  for (const char* view : {"reports", "logged", "report_events", "logged_events"})
    transaction.Execute("DROP VIEW IF EXISTS " + std::string(view));
  for (const std::string& table : AllTables()) transaction.Execute("DROP TABLE IF EXISTS " + table);
  for (const std::string& table : AllTables())
    transaction.Execute("ALTER TABLE " + (kNextTables + table) + " RENAME TO " + table);
  transaction.Execute(ViewsSql());
  transaction.Run("DELETE FROM building");
  WriteForm(transaction, TablesForm());
}

}  // namespace attune::server
