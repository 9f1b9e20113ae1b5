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

// Marks a row of a table. A rebuild would remove the mark.
void MarkRow(const std::string& path) {
  ASSERT_TRUE(sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadWriteCreate, 0)
                  .value()
                  ->Execute("UPDATE sweeps SET reason = 'marked'")
                  .ok());
}
bool HasMarkedRow(const std::string& path) {
  return sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadOnly, 0)
             .value()
             ->Number("SELECT count(*) FROM sweeps WHERE reason = 'marked'")
             .value() > 0;
}

TEST(Schema, TablesOfAnotherFormAreRebuilt) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  ASSERT_TRUE(SqliteStore::Open(path).value()->Append(SampleLog().events()).ok());
  ASSERT_TRUE(sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadWriteCreate, 0)
                  .value()
                  ->Execute("ALTER TABLE trials DROP COLUMN rationale;"
                            "UPDATE written_by SET version = '0.0.9', tables = 1")
                  .ok());
  SqliteStore::Open(path).value().reset();
  const auto trial = Reader::Open(path).value()->Detail({SweepId(1), TrialNumber(0)});
  ASSERT_TRUE(trial.ok()) << trial.error().message;
  EXPECT_EQ(trial->trial.best, 0.871);
  MarkRow(path);
  SqliteStore::Open(path).value().reset();
  EXPECT_TRUE(HasMarkedRow(path)) << "only the first start rebuilds";
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
  MarkRow(path);
  SqliteStore::Open(path).value().reset();
  EXPECT_EQ(version(), kVersion);
  EXPECT_TRUE(HasMarkedRow(path));
}

}  // namespace
}  // namespace attune::server
