#include "server/store/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "core/base/mark.h"
#include "server/store/reader.h"
#include "server/store/sqlite_store.h"
#include "server/store/tables.h"
#include "tests/support/sample_log.h"
#include "tests/support/scratch_folder.h"

namespace attune::server {
namespace {

// The tables for people are made anew where the version of the schema rises, and only there.
TEST(Schema, RisesWithTheTablesForPeople) {
  EXPECT_EQ(SchemaVersion(), 14);
  EXPECT_EQ(Mark(TablesSql()), 11166116012797276276u)
      << "The tables have changed: append to kMigrations, and write both numbers here";
}

TEST(Schema, AFileOfSchemaVersionOneIsBroughtForwardWithItsReports) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  {
    auto connection =
        sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadWriteCreate, 0).value();
    ASSERT_TRUE(connection
                    ->Execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, sweep INTEGER,"
                              " trial INTEGER, time INTEGER NOT NULL, kind TEXT NOT NULL,"
                              " version INTEGER NOT NULL, payload TEXT NOT NULL);"
                              "CREATE INDEX events_reports ON events (sweep, trial)"
                              " WHERE kind = 'trial_reported';"
                              "PRAGMA application_id = " +
                              std::to_string(kApplicationId) + "; PRAGMA user_version = 1")
                    .ok());
    std::ifstream file(ATTUNE_SOURCE_DIR "/tests/data/logs/v1.jsonl");
    for (std::string line; std::getline(file, line);) {
      ASSERT_TRUE(connection
                      ->Run("INSERT INTO events SELECT ?1 ->> '$.seq', ?1 ->> '$.sweep',"
                            " ?1 ->> '$.trial', ?1 ->> '$.time', ?1 ->> '$.kind',"
                            " ?1 ->> '$.version', ?1 -> '$.payload'",
                            line)
                      .ok());
    }
  }
  auto store = SqliteStore::Open(path).value();
  EXPECT_EQ(store->LastSeq(), EventSeq(40));
  auto reader = Reader::Open(path).value();
  const auto trial = reader->Detail({SweepId(1), TrialNumber(0)});
  ASSERT_TRUE(trial.ok()) << trial.error().message;
  EXPECT_EQ(trial->history.size(), 3u);
  EXPECT_EQ(trial->trial.best, 0.871);
}

TEST(Schema, TablesOfAnEarlierSchemaAreMadeAnew) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  ASSERT_TRUE(SqliteStore::Open(path).value()->Append(SampleLog().events()).ok());
  ASSERT_TRUE(sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadWriteCreate, 0)
                  .value()
                  ->Execute("ALTER TABLE trials DROP COLUMN rationale; PRAGMA user_version = 5")
                  .ok());
  SqliteStore::Open(path).value().reset();
  const auto trial = Reader::Open(path).value()->Detail({SweepId(1), TrialNumber(0)});
  ASSERT_TRUE(trial.ok()) << trial.error().message;
  EXPECT_EQ(trial->trial.best, 0.871);
}

}  // namespace
}  // namespace attune::server
