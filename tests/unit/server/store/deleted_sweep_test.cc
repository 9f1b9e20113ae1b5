#include <gtest/gtest.h>

#include <map>
#include <string>

#include "server/store/sqlite_store.h"
#include "tests/support/sample_log.h"

namespace attune::server {
namespace {

// The number of rows of a sweep in each table that has a column for it.
std::map<std::string, int64_t> RowsOf(const std::string& path, int64_t sweep) {
  auto connection = sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadOnly, 0).value();
  std::map<std::string, int64_t> counts;
  sqlite::Rows tables = connection->Query(
      "SELECT s.name FROM sqlite_schema AS s, pragma_table_info(s.name) AS c"
      " WHERE s.type IN ('table', 'view') AND c.name = 'sweep'"
      " AND s.name NOT IN ('events', 'ended_sweeps')");
  while (tables.Next()) {
    const std::string table(tables.Text(0));
    counts[table] =
        connection
            ->Number("SELECT count(*) FROM " + table + " WHERE sweep = " + std::to_string(sweep))
            .value();
  }
  EXPECT_TRUE(tables.status().ok());
  return counts;
}

TEST(DeletedSweep, LeavesNoRowsInTheTables) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  SampleLog log;
  auto store = SqliteStore::Open(path).value();
  const auto append = [&](Fact fact) {
    const Event event = log.Next(std::move(fact));
    ASSERT_TRUE(store->Append({&event, 1}).ok());
  };
  ASSERT_TRUE(store->Append(log.events()).ok());
  append(SweepCreated{.sweep = SweepId(2), .spec = SampleSpec(), .idempotency_key = "key-2"});
  append(TrialCreated{{SweepId(2), TrialNumber(0)}, SampleConfig(0.1), "random"});
  append(MetricsLogged{{{SweepId(1), TrialNumber(3)}, 1}, 1, 0.5, {{"batch_loss", 1}}});
  for (const std::string table :
       {"sweeps", "trials", "attempts", "checkpoints", "reports", "logged", "logged_metrics"})
    EXPECT_GT(RowsOf(path, 1).at(table), 0) << table;
  const auto others = RowsOf(path, 2);
  EXPECT_EQ(others.at("trials"), 1);

  append(SweepEnded{SweepId(1), SweepState::kStopped, ""});
  append(SweepDeleted{SweepId(1)});
  for (const bool rebuilt : {false, true}) {
    if (rebuilt) {
      ASSERT_TRUE(store->Rebuild().ok());
    }
    for (const auto& [table, rows] : RowsOf(path, 1)) EXPECT_EQ(rows, 0) << table;
    EXPECT_EQ(RowsOf(path, 2), others);
  }
}

}  // namespace
}  // namespace attune::server
