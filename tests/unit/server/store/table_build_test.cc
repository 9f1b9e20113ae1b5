#include "server/store/tables/table_build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "server/store/offline/check.h"
#include "server/store/reader.h"
#include "server/store/sqlite_store.h"
#include "server/store/tables/tables.h"
#include "tests/support/sample_log.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::chrono::microseconds kNone{0};

// A database with tables of another form and more events than one step of a build.
class TableBuild : public ::testing::Test {
 protected:
  TableBuild() {
    Open();
    Append(log_.events());
    std::vector<Event> reports;
    for (int64_t step = 10; step < 5'000; ++step)
      reports.push_back(log_.Next(
          TrialReported{{{SweepId(1), TrialNumber(3)}, 1},
                        {Step(step), {{"accuracy", 1.0 / double(step)}}, Seconds(1), false}}));
    Append(reports);
    while (store_->DoBackgroundWork()) continue;
    before_ = Rows();
    store_.reset();
  }

  // Every slice is as small as possible.
  void Open() {
    store_.reset();
    store_ = SqliteStore::Open(path_, {.slice = kNone, .build_at_open = kNone}).value();
  }
  void Append(const std::vector<Event>& events) { ASSERT_TRUE(store_->Append(events).ok()); }

  void Execute(const std::string& sql) {
    const Status done =
        sqlite::Connection::Open(path_, sqlite::Connection::Mode::kReadWriteCreate, 0)
            .value()
            ->Execute(sql);
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  void UseOtherForm() {
    Execute(
        "ALTER TABLE trials DROP COLUMN rationale; UPDATE trials SET reason = 'an old row';"
        " UPDATE written_by SET version = '0.0.9', tables = 1");
  }
  int64_t Number(const std::string& sql) const {
    return sqlite::Connection::Open(path_, sqlite::Connection::Mode::kReadOnly, 0)
        .value()
        ->Number(sql)
        .value();
  }
  // The rows of every table, as text.
  std::vector<std::string> Rows() const {
    std::vector<std::string> all;
    const auto connection =
        sqlite::Connection::Open(path_, sqlite::Connection::Mode::kReadOnly, 0).value();
    for (const char* table : kDerivedTables) {
      sqlite::Rows rows = connection->Query("SELECT * FROM " + std::string(table));
      const int columns = static_cast<int>(
          connection->Number("SELECT count(*) FROM pragma_table_info('" + std::string(table) + "')")
              .value());
      while (rows.Next()) {
        std::string& row = all.emplace_back(table);
        for (int column = 0; column < columns; ++column) row.append("|").append(rows.Text(column));
      }
      EXPECT_TRUE(rows.status().ok()) << table;
    }
    std::ranges::sort(all);
    return all;
  }
  std::vector<std::string> Faults() const {
    std::vector<std::string> faults;
    const auto findings = CheckDatabase(path_);
    if (!findings.ok()) return {findings.error().message};
    for (const Finding& finding : *findings) {
      if (finding.fault) faults.push_back(finding.what + ": " + *finding.fault);
    }
    return faults;
  }

  ScratchFolder folder_;
  const std::string path_ = folder_ / "attune.db";
  SampleLog log_;
  std::vector<std::string> before_;
  std::unique_ptr<SqliteStore> store_;
};

TEST_F(TableBuild, LeavesTheLogUsableMeanwhile) {
  UseOtherForm();
  Open();
  ASSERT_TRUE(store_->IsBuilding());
  const auto reader = Reader::MakeLazy(path_);
  const auto refused = reader->Sweeps(std::nullopt, 10);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(refused.error().message,
              HasSubstr("0 of " + std::to_string(store_->LastSeq().value)));
  EXPECT_EQ(reader->Ready().error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(reader->LastSeq().ok());

  ASSERT_TRUE(store_->DoBackgroundWork());
  EXPECT_THAT(reader->Ready().error().message, HasSubstr("1024 of "));
  Append({log_.Next(TrialEnded{{SweepId(1), TrialNumber(2)}, TrialState::kKilled, "by a person"})});
  int read = 0;
  ASSERT_TRUE(store_->Read(EventSeq(0), [&](const Event&) { ++read; }).ok());
  EXPECT_EQ(static_cast<uint64_t>(read), store_->LastSeq().value);
  EXPECT_EQ(Number("SELECT count(*) FROM trials WHERE reason <> 'an old row'"), 0)
      << "old rows do not change";

  while (store_->DoBackgroundWork()) continue;
  EXPECT_FALSE(store_->IsBuilding());
  EXPECT_TRUE(reader->Ready().ok());
  EXPECT_EQ(reader->Trial({SweepId(1), TrialNumber(2)})->state, "killed");
  EXPECT_THAT(Faults(), IsEmpty());
}

TEST_F(TableBuild, ContinuesAfterADeathInAnySlice) {
  UseOtherForm();
  int64_t built = -1;
  int slices = 0;
  for (Open(); store_->IsBuilding(); Open(), ++slices) {
    const int64_t now = Number("SELECT seq FROM building");
    EXPECT_GT(now, built);
    built = now;
    store_->DoBackgroundWork();
  }
  EXPECT_GE(slices, 4);
  while (store_->DoBackgroundWork()) continue;
  EXPECT_EQ(Rows(), before_);
  EXPECT_EQ(Number("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'next\\_%' ESCAPE '\\'"), 0);
  EXPECT_THAT(Faults(), IsEmpty());
}

TEST_F(TableBuild, RepeatedBuildsGiveTheSameTables) {
  for (int i = 0; i < 3; ++i) {
    Open();
    ASSERT_TRUE(store_->Rebuild().ok());
    EXPECT_EQ(Rows(), before_);
    EXPECT_THAT(Faults(), IsEmpty());
  }
}

TEST_F(TableBuild, IsRestartedByAnotherVersion) {
  UseOtherForm();
  Open();
  ASSERT_TRUE(store_->DoBackgroundWork());
  ASSERT_GT(Number("SELECT seq FROM building"), 0);
  store_.reset();
  Execute("UPDATE building SET tables = 7; ALTER TABLE next_trials DROP COLUMN rationale");
  Open();
  EXPECT_EQ(Number("SELECT seq FROM building"), 0);
  while (store_->DoBackgroundWork()) continue;
  EXPECT_EQ(Rows(), before_);
}

TEST_F(TableBuild, IsCompleteBeforeTheStartForASmallLog) {
  UseOtherForm();
  store_ = SqliteStore::Open(path_).value();
  EXPECT_FALSE(store_->IsBuilding());
  while (store_->DoBackgroundWork()) continue;
  EXPECT_EQ(Rows(), before_);
}

// A sweep is deleted and begins to be erased when the new tables have a part of it.
TEST_F(TableBuild, OmitsASweepThatIsDeletedMeanwhile) {
  UseOtherForm();
  Open();
  ASSERT_TRUE(store_->DoBackgroundWork());
  Append({log_.Next(SweepEnded{SweepId(1), SweepState::kStopped, ""}),
          log_.Next(SweepDeleted{SweepId(1), SharedState{}})});
  ASSERT_TRUE(store_->SaveSnapshot({store_->LastSeq(), "a snapshot", {}}).ok());
  while (store_->DoBackgroundWork()) continue;
  for (const SweepTable& table : kSweepTables)
    EXPECT_EQ(Number("SELECT count(*) FROM " + std::string(table.name)), 0) << table.name;
  EXPECT_EQ(Number("SELECT count(*) FROM events WHERE sweep = 1"), 1);
  EXPECT_THAT(Faults(), IsEmpty());
}

}  // namespace
}  // namespace attune::server
