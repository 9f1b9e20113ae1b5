#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/result.h"
#include "server/store/offline/check.h"
#include "server/store/reader.h"
#include "server/store/sqlite_store.h"
#include "tests/support/every_fact.h"
#include "tests/support/sample_log.h"

// Tests of faults in the tables and in the file system below the log.
namespace attune::server {
namespace {

using ::testing::HasSubstr;

class TableFaults : public ::testing::Test {
 protected:
  void Open(SqliteStore::Options options = {}) {
    store_.reset();
    auto store = SqliteStore::Open(path_, std::move(options));
    ASSERT_TRUE(store.ok()) << store.error().message;
    store_ = std::move(store).value();
  }
  void Append(const std::vector<Event>& events) {
    const Status written = store_->Append(events);
    ASSERT_TRUE(written.ok()) << written.error().message;
  }
  void Append(Fact fact) { Append(std::vector{log_.Next(std::move(fact))}); }

  int64_t Number(const std::string& sql) {
    auto connection = sqlite::Connection::Open(path_, sqlite::Connection::Mode::kReadOnly, 0);
    const auto number = (*connection)->Number(sql);
    EXPECT_TRUE(number.ok()) << number.error().message;
    return number.ok() ? *number : -1;
  }
  // Changes the database like another program that writes to it.
  void Execute(const std::string& sql) {
    auto connection =
        sqlite::Connection::Open(path_, sqlite::Connection::Mode::kReadWriteCreate, 0).value();
    const Status done = connection->Execute(sql);
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  void ExpectIntact() {
    const auto findings = CheckDatabase(path_).value();
    for (const Finding& finding : findings) EXPECT_EQ(finding.fault, std::nullopt) << finding.what;
  }
  TrialRow Trial(uint32_t number) {
    return Reader::Open(path_).value()->Trial({SweepId(1), TrialNumber(number)}).value();
  }

  const ScratchFolder folder_;
  const std::string path_ = folder_ / "attune.db";
  std::unique_ptr<SqliteStore> store_;
  SampleLog log_;
};

// Trials 100, 101, …, each with an attempt and this many reports, which alternate between the
// trials.
class ManyTrials : public TableFaults {
 protected:
  static constexpr uint32_t kTrials = 3 * kProgressRows;

  void SetUp() override {
    Open();
    std::vector<Event> events = log_.events();
    for (uint32_t i = 0; i < kTrials; ++i) {
      events.push_back(log_.Next(TrialCreated{Id(i), SampleConfig(0.1), "random"}));
      events.push_back(log_.Next(AttemptAssigned{.attempt = {Id(i), 1}, .epoch = Epoch(100 + i)}));
    }
    Append(events);
  }
  void Report(int64_t step, double accuracy) {
    std::vector<Event> events;
    for (uint32_t i = 0; i < kTrials; ++i)
      events.push_back(log_.Next(TrialReported{{Id(i), 1},
                                               {.step = Step(step),
                                                .metrics = {{"accuracy", accuracy}},
                                                .seconds = Seconds(static_cast<double>(step))}}));
    Append(events);
  }
  int64_t CountRowsUpToDate(int64_t step) {
    return Number("SELECT count(*) FROM trials WHERE number >= 100 AND step = " +
                  std::to_string(step));
  }
  static TrialId Id(uint32_t i) { return {SweepId(1), TrialNumber(100 + i)}; }
};

TEST_F(TableFaults, AFactThatTheTablesCannotTakeIsStillLogged) {
  Open();
  Append(log_.events());
  const auto before = log_.events().size();
  // The tables already have this sweep. Later events must still be stored.
  Append({log_.Next(SweepCreated{.sweep = SweepId(1), .spec = SampleSpec()}),
          log_.Next(TrialEnded{{SweepId(1), TrialNumber(2)}, TrialState::kKilled, "by a person"})});
  EXPECT_EQ(store_->LastSeq().value, before + 2);
  EXPECT_EQ(Trial(2).state, "killed");
  EXPECT_EQ(Number("SELECT seq FROM unshown"), static_cast<int64_t>(before + 1));
  EXPECT_EQ(Number("SELECT retry FROM unshown"), 1);
  const auto findings = CheckDatabase(path_).value();
  const auto tables = std::ranges::find(findings, "tables", &Finding::what);
  ASSERT_NE(tables, findings.end());
  EXPECT_THAT(tables->fault.value_or(""), HasSubstr("event " + std::to_string(before + 1)));
}

TEST_F(TableFaults, TheNextStartRebuildsTheTablesOnce) {
  Open();
  Append(log_.events());
  Append(SweepCreated{.sweep = SweepId(1), .spec = SampleSpec()});
  Execute("UPDATE trials SET reason = 'marked'");
  Open();
  EXPECT_EQ(Number("SELECT retry FROM unshown"), 0);
  EXPECT_EQ(Number("SELECT count(*) FROM trials WHERE reason = 'marked'"), 0);
  Execute("UPDATE trials SET reason = 'marked'");
  Open();
  EXPECT_GT(Number("SELECT count(*) FROM trials WHERE reason = 'marked'"), 0);
}

TEST_F(TableFaults, ReportsOfADamagedFrontAreInTheLogAndLeftOutUntilTheNextStart) {
  Open();
  Append(log_.events());
  double best = 0.871;
  for (const std::string damaged : {"[0.8", "0.8", "{}", R"(["a"])", "[0.8, 1]"}) {
    SCOPED_TRACE(damaged);
    Open();
    Execute("UPDATE front SET objectives = '" + damaged + "'");
    best += 0.001;
    Append(TrialReported{{{SweepId(1), TrialNumber(3)}, 1},
                         {.step = Step(4), .metrics = {{"accuracy", best}}}});
    Append(TrialEnded{{SweepId(1), TrialNumber(2)}, TrialState::kKilled, "by a person"});
    EXPECT_EQ(Number("SELECT seq FROM unshown WHERE retry"),
              static_cast<int64_t>(store_->LastSeq().value) - 1);
    Open();
    EXPECT_EQ(Number("SELECT count(*) FROM unshown"), 0);
    EXPECT_EQ(Trial(3).best, best);
    ExpectIntact();
  }
}

TEST_F(TableFaults, ADamagedRowIsMarkedAndTheListIsWhole) {
  Open();
  Append(log_.events());
  Append(SweepCreated{.sweep = SweepId(2), .spec = SampleSpec()});
  const auto reader = Reader::Open(path_).value();
  const size_t trials = reader->Trials(SweepId(1), {}).value().trials.size();
  for (const std::string column : {"config", "metrics", "rationale"}) {
    SCOPED_TRACE(column);
    for (const std::string damaged : {"{", "[]", "7", "\"text\"", ""}) {
      SCOPED_TRACE(damaged);
      Execute("UPDATE trials SET " + column + " = '" + damaged + "' WHERE number = 1");
      const auto page = reader->Trials(SweepId(1), {});
      ASSERT_TRUE(page.ok()) << page.error().message;
      ASSERT_EQ(page->trials.size(), trials);
      EXPECT_TRUE(page->trials[1].damaged);
      EXPECT_EQ(page->trials[1].id.number, TrialNumber(1));
      EXPECT_FALSE(page->trials[0].damaged);
      EXPECT_EQ(reader->Trial({SweepId(1), TrialNumber(1)}).error().code, ErrorCode::kCorrupt);
      EXPECT_TRUE(reader->Sweeps(std::nullopt, 10).ok());
    }
  }
  Execute("UPDATE sweeps SET spec = '{\"name\":' WHERE sweep = 1");
  const auto sweeps = reader->Sweeps(std::nullopt, 10);
  ASSERT_TRUE(sweeps.ok()) << sweeps.error().message;
  ASSERT_EQ(sweeps->size(), 2u);
  EXPECT_FALSE((*sweeps)[0].damaged);
  EXPECT_TRUE((*sweeps)[1].damaged);
  EXPECT_FALSE((*sweeps)[1].spec.objectives.empty());
  EXPECT_EQ(reader->Sweep(SweepId(1)).error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(reader->Sweep(SweepId(2)).ok());
}

TEST_F(TableFaults, NoKindOfFactIsRefused) {
  Open();
  Append(log_.events());
  for (Fact& fact : attune::testing::EveryFact()) {
    Append(std::move(fact));
  }
  EXPECT_EQ(store_->LastSeq().value, static_cast<uint64_t>(Number("SELECT count(*) FROM events")));
}

TEST_F(TableFaults, NonFiniteSecondsAreAccepted) {
  Open();
  Append(log_.events());
  Append(TrialReported{
      {{SweepId(1), TrialNumber(3)}, 1},
      {.step = Step(4), .metrics = {{"accuracy", 0.5}}, .seconds = Seconds(std::nan(""))}});
  EXPECT_EQ(Number("SELECT count(*) FROM unshown"), 0);
  EXPECT_EQ(Trial(3).step, Step(4));
}

TEST_F(ManyTrials, FewRowsAreUpdatedWithABatch) {
  Report(1, 0.5);
  EXPECT_EQ(CountRowsUpToDate(1), static_cast<int64_t>(kProgressRows));
  EXPECT_EQ(Number("SELECT count(*) FROM behind"), 1);
  EXPECT_FALSE(store_->DoBackgroundWork());
  EXPECT_EQ(CountRowsUpToDate(1), static_cast<int64_t>(kTrials));
  EXPECT_EQ(Number("SELECT count(*) FROM behind"), 0);
  EXPECT_FALSE(store_->DoBackgroundWork());
}

TEST_F(ManyTrials, ALargeBatchUpdatesMoreRows) {
  std::vector<Event> events;
  constexpr size_t kRows = kProgressRows + 1;
  for (size_t i = 0; i < kRows * kEventsPerProgressRow; ++i)
    events.push_back(
        log_.Next(TrialReported{{Id(static_cast<uint32_t>(i % kTrials)), 1},
                                {.step = Step(1 + static_cast<int64_t>(i / kTrials))}}));
  Append(events);
  EXPECT_EQ(Number("SELECT count(*) FROM trials WHERE number >= 100 AND step > 0"),
            static_cast<int64_t>(kRows));
}

TEST_F(ManyTrials, NoRowWaitsForMoreThanItsTurn) {
  for (int64_t step = 1; step <= 8; ++step) Report(step, 0.5);
  // Three batches update every row once.
  EXPECT_EQ(Number("SELECT count(*) FROM trials WHERE number >= 100 AND step < 5"), 0);
}

TEST_F(ManyTrials, TheRowOfATrialWhoseAttemptEndsIsUpToDate) {
  Report(1, 0.5);
  Report(2, 0.25);
  const TrialId last = Id(kTrials - 1);
  Append(AttemptEnded{.attempt = {last, 1}, .outcome = Outcome::kStopped});
  EXPECT_EQ(Trial(last.number.value).step, Step(2));
  EXPECT_EQ(Trial(last.number.value).best, 0.5);
}

TEST_F(ManyTrials, TheNextProcessUpdatesTheRemainingRows) {
  Report(1, 0.5);
  Report(2, 0.25);
  // The attempt has ended since. Another attempt of the same trial has no reports.
  Append({log_.Next(AttemptEnded{.attempt = {Id(170), 1}, .outcome = Outcome::kLost}),
          log_.Next(AttemptAssigned{.attempt = {Id(170), 2}, .epoch = Epoch(5'000)})});
  EXPECT_EQ(Number("SELECT count(*) FROM behind"), 1);
  Open();
  EXPECT_EQ(CountRowsUpToDate(2), static_cast<int64_t>(kTrials));
  EXPECT_EQ(Trial(Id(170).number.value).seconds, Seconds(2));
  ExpectIntact();
}

TEST_F(ManyTrials, AStartWithADamagedFrontRebuildsTheTables) {
  Report(1, 0.9);
  ASSERT_EQ(Number("SELECT count(*) FROM behind"), 1);
  store_.reset();
  Execute("UPDATE front SET objectives = '[0.9'");
  Open();
  while (store_->DoBackgroundWork()) continue;
  EXPECT_EQ(CountRowsUpToDate(1), static_cast<int64_t>(kTrials));
  ExpectIntact();
}

TEST_F(ManyTrials, ADatabaseWithPendingRowsHasNoFaults) {
  Report(1, 0.5);
  ExpectIntact();
}

TEST_F(ManyTrials, ABatchThatWasRefusedLosesNoReportOfAnEarlierOne) {
  Report(1, 0.5);
  auto other =
      sqlite::Connection::Open(path_, sqlite::Connection::Mode::kReadWriteCreate, 0).value();
  Open({.busy_timeout_ms = 0});
  Report(2, 0.5);
  ASSERT_TRUE(other->Execute("BEGIN IMMEDIATE").ok());
  SampleLog another = log_;
  EXPECT_FALSE(store_->Append(std::vector{another.Next(SearchExhausted{SweepId(1)})}).ok());
  ASSERT_TRUE(other->Execute("ROLLBACK").ok());
  Append(SearchExhausted{SweepId(1)});
  while (store_->DoBackgroundWork()) continue;
  EXPECT_EQ(CountRowsUpToDate(2), static_cast<int64_t>(kTrials));
}

TEST_F(TableFaults, ALargeSnapshotIsSplitIntoRows) {
  Open({.snapshot_part_bytes = 10});
  Append(log_.events());
  for (const size_t size : {0, 9, 10, 11, 35}) {
    const std::string bytes(size, 'b');
    ASSERT_TRUE(store_->SaveSnapshot({store_->LastSeq(), bytes, {}}).ok());
    EXPECT_EQ((*store_->ReadSnapshot(store_->LastSeq()))->bytes, bytes);
    EXPECT_EQ(Number("SELECT count(*) FROM snapshots"),
              static_cast<int64_t>(std::max<size_t>(1, (size + 9) / 10)));
  }
}

// ---- A disk whose syncs fail -----------------------------------------------------------------

// SQLite's own file system, except that syncs fail while `fails` is set.
class FrailDisk {
 public:
  FrailDisk() {
    sqlite3_vfs* const real = sqlite3_vfs_find(nullptr);
    vfs_ = *real;
    vfs_.zName = "frail";
    open_ = real->xOpen;
    vfs_.xOpen = &Open;
    sqlite3_vfs_register(&vfs_, 1);
  }
  ~FrailDisk() {
    fails = false;
    sqlite3_vfs_unregister(&vfs_);
  }

  static inline bool fails = false;

 private:
  static int Open(sqlite3_vfs* vfs, sqlite3_filename name, sqlite3_file* file, int flags,
                  int* out) {
    const int code = open_(vfs, name, file, flags, out);
    if (code != SQLITE_OK || file->pMethods == nullptr) return code;
    sync_ = file->pMethods->xSync;
    sqlite3_io_methods& methods =
        methods_.try_emplace(file->pMethods, *file->pMethods).first->second;
    methods.xSync = &Sync;
    file->pMethods = &methods;
    return code;
  }
  static int Sync(sqlite3_file* file, int flags) {
    return fails ? SQLITE_IOERR_FSYNC : sync_(file, flags);
  }

  static inline decltype(sqlite3_vfs::xOpen) open_ = nullptr;
  static inline decltype(sqlite3_io_methods::xSync) sync_ = nullptr;
  // SQLite passes different flags for databases and logs.
  static inline std::map<const sqlite3_io_methods*, sqlite3_io_methods> methods_;
  sqlite3_vfs vfs_;
};

TEST_F(TableFaults, AFailedSyncLeavesTheDecisionToTheNextStart) {
  const FrailDisk disk;
  Open();
  Append(log_.events());
  FrailDisk::fails = true;
  const Status written = store_->Append(std::vector{log_.Next(SearchExhausted{SweepId(1)})});
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::kUnsynced);
  FrailDisk::fails = false;
  // The files at the end of the process. The commit record is already written.
  for (const char* file : {"", "-wal"})
    std::filesystem::copy_file(path_ + file, folder_ / "after.db" + file);
  const auto after = SqliteStore::Open(folder_ / "after.db");
  ASSERT_TRUE(after.ok()) << after.error().message;
  EXPECT_EQ((*after)->LastSeq().value, log_.events().size() + 1);
  store_.reset();  // must be destroyed before its disk
}

}  // namespace
}  // namespace attune::server
