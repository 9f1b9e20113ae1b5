#include "server/store/schema.h"

#include <gtest/gtest.h>

#include <string>

#include "base/version.h"
#include "server/store/reader.h"
#include "server/store/sqlite_store.h"
#include "tests/support/sample_log.h"
#include "tests/support/scratch_folder.h"

namespace attune::server {
namespace {

TEST(Schema, TablesOfAnotherFormAreRebuilt) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  ASSERT_TRUE(SqliteStore::Open(path).value()->Append(SampleLog().events()).ok());
  ASSERT_TRUE(sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadWriteCreate, 0)
                  .value()
                  ->Execute("ALTER TABLE trials DROP COLUMN rationale;"
                            "UPDATE written_by SET version = '0.0.9', tables = 1")
                  .ok());
  int rebuilds = 0;
  const SqliteStore::Options options{.progress = [&](uint64_t, uint64_t) { ++rebuilds; }};
  SqliteStore::Open(path, options).value().reset();
  SqliteStore::Open(path, options).value().reset();
  EXPECT_EQ(rebuilds, 1) << "only the first time";
  const auto trial = Reader::Open(path).value()->Detail({SweepId(1), TrialNumber(0)});
  ASSERT_TRUE(trial.ok()) << trial.error().message;
  EXPECT_EQ(trial->trial.best, 0.871);
}

TEST(Schema, AnotherVersionWithTheSameTablesOnlyWritesItsName) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  ASSERT_TRUE(SqliteStore::Open(path).value()->Append(SampleLog().events()).ok());
  const auto connection =
      sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadWriteCreate, 0).value();
  const auto version = [&] {
    sqlite::Rows rows = connection->Query("SELECT version FROM written_by");
    return rows.Next() ? std::string(rows.Text(0)) : "";
  };
  EXPECT_EQ(version(), kVersion);
  ASSERT_TRUE(connection->Execute("UPDATE written_by SET version = '0.0.9'").ok());
  int rebuilds = 0;
  const SqliteStore::Options options{.progress = [&](uint64_t, uint64_t) { ++rebuilds; }};
  SqliteStore::Open(path, options).value().reset();
  EXPECT_EQ(version(), kVersion);
  EXPECT_EQ(rebuilds, 0);
}

}  // namespace
}  // namespace attune::server
