#include "server/store/sqlite_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "base/result.h"
#include "base/version.h"
#include "server/store/event_codec.h"
#include "server/store/reader.h"
#include "server/store/schema.h"
#include "server/store/tables/tables.h"
#include "tests/support/mentions.h"
#include "tests/support/sample_log.h"

namespace attune::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<SqliteStore> OpenOrDie(const std::string& path, SqliteStore::Options options = {}) {
  auto store = SqliteStore::Open(path, options);
  if (!store.ok()) ADD_FAILURE() << store.error().message;
  return std::move(store).value();
}

std::vector<std::string> ReadAll(const SqliteStore& store, uint64_t after = 0) {
  std::vector<std::string> lines;
  const Status read = store.Read(EventSeq(after), [&](const Event& event) {
    const EncodedFact encoded = Encode(event.fact);
    lines.push_back(std::to_string(event.seq.value) + " " + std::to_string(event.time.us) + " " +
                    std::string(encoded.kind) + " " + encoded.payload);
  });
  EXPECT_TRUE(read.ok()) << read.error().message;
  return lines;
}

// Every row of every table for people, as text.
std::vector<std::string> Tables(const std::string& path) {
  auto connection = sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadOnly, 0).value();
  std::vector<std::string> lines;
  for (const std::string table : {"sweeps", "trials", "attempts", "decisions", "checkpoints",
                                  "executors", "front", "report_index"}) {
    sqlite::Rows columns = connection->Query(
        "SELECT group_concat('quote(' || name || ')', '||''|''||') FROM pragma_table_info(?)",
        table);
    EXPECT_TRUE(columns.Next());
    sqlite::Rows rows =
        connection->Query("SELECT " + std::string(columns.Text(0)) + " FROM " + table);
    while (rows.Next()) lines.push_back(table + ": " + std::string(rows.Text(0)));
    EXPECT_TRUE(rows.status().ok());
  }
  return lines;
}

void Execute(const std::string& path, const std::string& sql) {
  auto connection =
      sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadWriteCreate, 0).value();
  const Status done = connection->Execute(sql);
  ASSERT_TRUE(done.ok()) << done.error().message;
}

TEST(SqliteStore, ReadsAppendedEventsAfterReopening) {
  const ScratchFolder folder;
  const SampleLog log;
  std::vector<std::string> before;
  {
    auto store = OpenOrDie(folder / "attune.db");
    ASSERT_TRUE(store->Append(log.events()).ok());
    before = ReadAll(*store);
  }
  auto store = OpenOrDie(folder / "attune.db");
  EXPECT_EQ(ReadAll(*store), before);
  EXPECT_EQ(before.size(), log.events().size());
  EXPECT_EQ(store->LastSeq(), log.events().back().seq);
}

TEST(SqliteStore, ReadBeginsAfterTheGivenEvent) {
  const ScratchFolder folder;
  const SampleLog log;
  auto store = OpenOrDie(folder / "attune.db");
  ASSERT_TRUE(store->Append(log.events()).ok());
  EXPECT_EQ(ReadAll(*store, log.events().size() - 2).size(), 2u);
  EXPECT_TRUE(ReadAll(*store, log.events().size()).empty());
}

TEST(SqliteStore, TablesDoNotDependOnTheSizeOfBatches) {
  const ScratchFolder folder;
  const SampleLog log;
  auto whole = OpenOrDie(folder / "whole.db");
  ASSERT_TRUE(whole->Append(log.events()).ok());
  auto single = OpenOrDie(folder / "single.db");
  for (const Event& event : log.events()) ASSERT_TRUE(single->Append({&event, 1}).ok());
  EXPECT_EQ(Tables(folder / "single.db"), Tables(folder / "whole.db"));
}

TEST(SqliteStore, RebuildingGivesTheSameTables) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  auto store = OpenOrDie(path);
  ASSERT_TRUE(store->Append(SampleLog().events()).ok());
  const auto before = Tables(path);
  Execute(path, "DROP TABLE trials; DELETE FROM sweeps; UPDATE attempts SET failure = 'lies';");
  ASSERT_NE(before.size(), 0u);
  const Status rebuilt = store->Rebuild();
  ASSERT_TRUE(rebuilt.ok()) << rebuilt.error().message;
  EXPECT_EQ(Tables(path), before);
}

// Batches of one report and one logged value, after the events of the sample log.
std::vector<Event> ManyReports(SampleLog& log, size_t count) {
  std::vector<Event> events;
  for (size_t i = 0; i < count; ++i) {
    const TrialId trial(SweepId(1), TrialNumber(static_cast<uint32_t>(i % 4)));
    const auto step = static_cast<int64_t>(10 + i / 4);
    const Report report{.step = Step(step), .metrics = {{"accuracy", 1.0 / (1.0 + double(i))}}};
    events.push_back(log.Next(TrialReported{{trial, 1}, report}));
    const auto number = static_cast<int64_t>(i / 4) + 1;
    events.push_back(log.Next(
        MetricsLogged{{trial, 1}, number, static_cast<double>(step) + 0.5, {{"batch_loss", 0.5}}}));
  }
  return events;
}

TEST(SqliteStore, FindsMeasuredValuesIndexedOrNot) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  auto store = OpenOrDie(path);
  SampleLog log;
  ASSERT_TRUE(store->Append(log.events()).ok());
  auto reader = Reader::Open(path).value();
  const size_t already = reader->Detail({SweepId(1), TrialNumber(3)})->history.size();
  const std::vector<Event> reports = ManyReports(log, kCurveIndexEvery);
  size_t appended = 0;
  for (const size_t until : {kCurveIndexEvery / 2, kCurveIndexEvery, 2 * kCurveIndexEvery}) {
    ASSERT_TRUE(store->Append(std::span(reports).subspan(appended, until - appended)).ok());
    appended = until;
    const auto trial = reader->Detail({SweepId(1), TrialNumber(3)});
    ASSERT_TRUE(trial.ok()) << trial.error().message;
    EXPECT_EQ(trial->history.size() - already, until / 8);
    const auto logged = reader->Logged(trial->trial.id, EventSeq(0), static_cast<int>(until));
    EXPECT_EQ(logged->size(), until / 8);
    EXPECT_EQ(logged->back().step, 9.5 + static_cast<double>(until / 8));
    EXPECT_TRUE(
        std::ranges::is_sorted(trial->history, {}, [](const ReportRow& row) { return row.time; }));
    EXPECT_EQ(reader->MetricCurves(SweepId(1), "accuracy")->trials.size(), 4u);
    EXPECT_EQ(reader->MetricCurves(SweepId(1), "batch_loss")->trials.size(), 4u);
  }
  const auto before = Tables(path);
  ASSERT_TRUE(store->Rebuild().ok());
  EXPECT_EQ(Tables(path), before);
}

TEST(SqliteStore, TheViewOfReportsHasAColumnForEachMember) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  auto store = OpenOrDie(path);
  ASSERT_TRUE(store->Append(SampleLog().events()).ok());
  auto connection = sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadOnly, 0).value();
  sqlite::Rows rows = connection->Query(
      "SELECT attempt, step, seconds, metrics ->> '$.accuracy' FROM reports"
      " WHERE sweep = 1 AND trial = 0 ORDER BY seq");
  std::vector<std::vector<double>> found;
  while (rows.Next()) found.push_back({rows.Real(0), rows.Real(1), rows.Real(2), rows.Real(3)});
  EXPECT_THAT(found, ElementsAre(ElementsAre(1, 1, 1.5, 0.5), ElementsAre(1, 3, 4.25, 0.75),
                                 ElementsAre(2, 9, 6.0, 0.871)));
}

TEST(SqliteStore, AGapInTheLogIsFoundOnReading) {
  const ScratchFolder folder;
  auto store = OpenOrDie(folder / "attune.db");
  ASSERT_TRUE(store->Append(SampleLog().events()).ok());
  Execute(folder / "attune.db", "DELETE FROM events WHERE seq = 5");
  const Status read = store->Read(EventSeq(0), [](const Event&) {});
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(read.error().message, HasSubstr("event 5"));
}

// Creates a database, changes it with this SQL, and returns the error of opening it.
Error RefusalAfter(const std::string& sql) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  OpenOrDie(path).reset();
  Execute(path, sql);
  const auto opened = SqliteStore::Open(path);
  return opened.ok() ? Error{ErrorCode::kInternal, "it was opened"} : opened.error();
}

TEST(SqliteStore, AnotherFormatIsRefusedWithBothVersionsAndTheRemedy) {
  const Error refusal =
      RefusalAfter("UPDATE written_by SET version = '9.8.7'; PRAGMA user_version = 99");
  EXPECT_EQ(refusal.code, ErrorCode::kCorrupt);
  EXPECT_THAT(refusal.message, testing::Mentions("format 99", "9.8.7"));
  EXPECT_THAT(refusal.message, HasSubstr(kVersion));
}

TEST(SqliteStore, AFormatWhoseWriterIsUnknownIsRefused) {
  const Error refusal = RefusalAfter("DROP TABLE written_by; PRAGMA user_version = 14");
  EXPECT_EQ(refusal.code, ErrorCode::kCorrupt);
  EXPECT_THAT(refusal.message, testing::Mentions("format 14", "development"));
}

TEST(SqliteStore, RefusesAFileThatIsNotADatabase) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  std::ofstream(path) << std::string(8192, 'x');
  const auto opened = SqliteStore::Open(path);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(opened.error().message, HasSubstr(path));
  EXPECT_THAT(opened.error().message, HasSubstr("backup"));
}

TEST(SqliteStore, ADatabaseOfAnotherProgramIsLeftAlone) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  Execute(path, "CREATE TABLE recipes (name TEXT)");
  const auto opened = SqliteStore::Open(path);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(opened.error().message, HasSubstr("another program"));
}

TEST(SqliteStore, ADamagedPageIsReportedWithTheRemedy) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  SampleLog log;
  {
    auto store = OpenOrDie(path);
    ASSERT_TRUE(store->Append(log.events()).ok());
    const Event large =
        log.Next(TrialRequeued{TrialId(SweepId(1), TrialNumber(3)), std::string(1 << 20, 'x')});
    ASSERT_TRUE(store->Append({&large, 1}).ok());
  }
  const auto first_leaf =
      sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadOnly, 0)
          .value()
          ->Number("SELECT min(pageno) FROM dbstat WHERE name = 'events' AND pagetype = 'leaf'");
  ASSERT_TRUE(first_leaf.ok()) << first_leaf.error().message;
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp((*first_leaf - 1) * 4096);
    file << std::string(200, '\xff');
  }
  auto store = SqliteStore::Open(path);
  const Status read = store.ok() ? (*store)->Read(EventSeq(0), [](const Event&) {}) : store.error();
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(read.error().message, HasSubstr(path));
  EXPECT_THAT(read.error().message, HasSubstr("backup"));
}

TEST(SqliteStore, AFileLockedByAnotherProcessIsAConflict) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  OpenOrDie(path).reset();
  auto other =
      sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadWriteCreate, 0).value();
  ASSERT_TRUE(other->Execute("BEGIN IMMEDIATE").ok());
  const auto opened = SqliteStore::Open(path, {.busy_timeout_ms = 0});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kConflict);
  EXPECT_THAT(opened.error().message, HasSubstr("locked"));
}

TEST(SqliteStore, ALockDuringAnAppendLeavesTheStoreUsable) {
  const ScratchFolder folder;
  const SampleLog log;
  auto store = OpenOrDie(folder / "attune.db", {.busy_timeout_ms = 0});
  auto other =
      sqlite::Connection::Open(folder / "attune.db", sqlite::Connection::Mode::kReadWriteCreate, 0)
          .value();
  ASSERT_TRUE(other->Execute("BEGIN IMMEDIATE").ok());
  const Status refused = store->Append(log.events());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  ASSERT_TRUE(other->Execute("ROLLBACK").ok());
  EXPECT_TRUE(store->Append(log.events()).ok());
}

TEST(SqliteStore, AReadOnlyFileIsDenied) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  OpenOrDie(path).reset();
  ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0555), 0);
  const bool root = ::geteuid() == 0;  // root may write anywhere
  ASSERT_EQ(root ? ::seteuid(65534) : 0, 0);
  const auto opened = SqliteStore::Open(path);
  ASSERT_EQ(root ? ::seteuid(0) : 0, 0);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kDenied) << opened.error().message;
  EXPECT_THAT(opened.error().message, HasSubstr("writing"));
}

TEST(SqliteStore, AMissingFolderIsDeniedAndNamed) {
  const auto opened = SqliteStore::Open("/nonexistent-folder/attune.db");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kDenied);
  EXPECT_THAT(opened.error().message, HasSubstr("/nonexistent-folder/attune.db"));
}

// Appends until an append fails, and returns the events that were stored.
size_t FillUp(SqliteStore& store, SampleLog& log) {
  const Status first = store.Append(log.events());
  EXPECT_TRUE(first.ok()) << first.error().message;
  for (size_t taken = log.events().size();; ++taken) {
    const Event event =
        log.Next(TrialRequeued{TrialId(SweepId(1), TrialNumber(3)), std::string(50'000, 'x')});
    const Status appended = store.Append({&event, 1});
    if (appended.ok()) continue;
    EXPECT_EQ(appended.error().code, ErrorCode::kStorageFull) << appended.error().message;
    return taken;
  }
}

TEST(SqliteStore, AFullStoreRefusesABatchAsAWholeAndSaysSo) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  SampleLog log;
  auto store = OpenOrDie(path, {.max_pages = 1024});
  const size_t taken = FillUp(*store, log);
  const auto before = Tables(path);

  // The batch has a small event and an event that does not fit. Neither is kept.
  const std::vector<Event> batch = {
      {EventSeq(taken + 1), Time{kSampleStart}, SearchExhausted{SweepId(1)}},
      {EventSeq(taken + 2), Time{kSampleStart},
       TrialRequeued{TrialId(SweepId(1), TrialNumber(2)), std::string(500'000, 'y')}}};
  const Status refused = store->Append(batch);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kStorageFull);
  EXPECT_EQ(ReadAll(*store).size(), taken);
  EXPECT_EQ(Tables(path), before);
  EXPECT_EQ(store->LastSeq().value, taken);

  const Status probed = store->Probe();
  ASSERT_FALSE(probed.ok());
  EXPECT_EQ(probed.error().code, ErrorCode::kStorageFull);
}

TEST(SqliteStore, AProbeLeavesNoTrace) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  auto store = OpenOrDie(path);
  ASSERT_TRUE(store->Append(SampleLog().events()).ok());
  const auto before = Tables(path);
  for (int time = 0; time < 3; ++time) ASSERT_TRUE(store->Probe().ok());
  EXPECT_EQ(Tables(path), before);
  auto connection = sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadOnly, 0).value();
  EXPECT_EQ(connection->Number("SELECT count(*) FROM sqlite_schema WHERE name = 'probe'").value(),
            0);
}

std::optional<ErrorCode> CodeOf(const Status& status) {
  if (status.ok()) return std::nullopt;
  return status.error().code;
}

// Uses a real full disk, which needs the right to mount.
TEST(SqliteStore, ContinuesAfterAFullDisk) {
  const ScratchFolder folder;
  const std::string disk = folder / "disk";
  ASSERT_EQ(::mkdir(disk.c_str(), 0755), 0);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=6m") != 0)
    GTEST_SKIP() << "may not mount a small disk";
  {
    SampleLog log;
    auto store = OpenOrDie(disk + "/attune.db");
    const std::string ballast(16 << 20, 'b');
    std::ofstream(disk + "/ballast") << ballast;  // fills the disk
    const Status probed = store->Probe();
    EXPECT_EQ(CodeOf(probed), ErrorCode::kStorageFull);

    std::vector<Event> batch = log.events();
    batch.push_back(
        log.Next(TrialRequeued{TrialId(SweepId(1), TrialNumber(3)), std::string(2 << 20, 'x')}));
    const Status refused = store->Append(batch);
    EXPECT_EQ(CodeOf(refused), ErrorCode::kStorageFull);
    EXPECT_TRUE(ReadAll(*store).empty());

    std::filesystem::remove(disk + "/ballast");
    EXPECT_TRUE(store->Probe().ok());
    EXPECT_TRUE(store->Append(log.events()).ok());
  }
  ASSERT_EQ(::umount(disk.c_str()), 0);
}

TEST(SqliteStore, ASnapshotAheadOfTheLogIsSkipped) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  auto store = OpenOrDie(path);
  ASSERT_TRUE(store->Append(SampleLog().events()).ok());
  ASSERT_TRUE(store->SaveSnapshot({store->LastSeq(), "ours", {}}).ok());
  Execute(path, "INSERT INTO snapshots VALUES (1000, 0, 'another')");
  EXPECT_EQ((*store->ReadSnapshot(EventSeq(5'000)))->bytes, "ours");
  ASSERT_TRUE(store->SaveSnapshot({store->LastSeq(), "ours again", {}}).ok());
  auto connection = sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadOnly, 0).value();
  EXPECT_EQ(connection->Number("SELECT count(*) FROM snapshots").value(), 1);
}

TEST(SqliteStore, ADrainSurvivesARestartOfItsExecutor) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  SampleLog log;
  auto store = OpenOrDie(path);
  ASSERT_TRUE(store->Append(log.events()).ok());
  const auto append = [&](const Fact& fact) {
    const Event event = log.Next(fact);
    ASSERT_TRUE(store->Append({&event, 1}).ok());
  };
  const ExecutorJoined joined{
      .name = "den", .instance = "a", .incarnation = Incarnation(7), .labels = {{"gpu", "h100"}}};
  append(joined);
  append(ExecutorDrained{"den", "hot"});
  append(ExecutorLost{"den", Incarnation(7), "silent"});
  append(joined);
  auto reader = sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadOnly, 0).value();
  const auto count = [&](const std::string& where) {
    return reader->Number("SELECT count(*) FROM executors WHERE name = 'den' AND " + where).value();
  };
  EXPECT_EQ(count("labels ->> '$.gpu' = 'h100' AND drained IS NOT NULL AND drain_reason = 'hot'"),
            1);
  EXPECT_EQ(count("state = 'online' AND lost IS NULL AND reason = ''"), 1);
  append(ExecutorResumed{"den"});
  EXPECT_EQ(count("drained IS NULL AND drain_reason IS NULL"), 1);
  append(ExecutorHealth{"den", "its disk is full"});
  append(ExecutorQuarantined{"den", "gangs fail there", Time{60'000'000}});
  EXPECT_EQ(
      count("health_problem = 'its disk is full' AND quarantine_reason = 'gangs fail there' AND"
            " quarantine_until = '1970-01-01T00:01:00.000000Z'"),
      1);
  append(ExecutorHealth{"den", ""});
  append(ExecutorQuarantineEnded{"den", "its time is over"});
  EXPECT_EQ(
      count("health_problem IS NULL AND quarantine_until IS NULL AND quarantine_reason IS NULL"),
      1);
}

TEST(SqliteStore, ALongReadDoesNotDelayAppends) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  SampleLog log;
  auto store = OpenOrDie(path, {.busy_timeout_ms = 0});
  ASSERT_TRUE(store->Append(log.events()).ok());
  auto reader = sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadOnly, 0).value();
  sqlite::Transaction snapshot(*reader, sqlite::Transaction::Kind::kRead);
  const auto before = reader->Number("SELECT count(*) FROM events").value();
  // More than the size at which the log file is copied into the database.
  for (int batch = 0; batch < 20; ++batch) {
    const Event event =
        log.Next(TrialRequeued{TrialId(SweepId(1), TrialNumber(3)), std::string(1 << 20, 'x')});
    const Status appended = store->Append({&event, 1});
    ASSERT_TRUE(appended.ok()) << appended.error().message;
  }
  EXPECT_EQ(reader->Number("SELECT count(*) FROM events").value(), before);
}

TEST(SqliteStore, ReadersDoNotHoldUpTheWriterNorSeeHalfABatch) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  SampleLog log;
  auto store = OpenOrDie(path, {.busy_timeout_ms = 0});
  ASSERT_TRUE(store->Append(log.events()).ok());
  auto reader = sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadOnly, 0).value();
  sqlite::Transaction snapshot(*reader, sqlite::Transaction::Kind::kRead);
  const auto before = reader->Number("SELECT count(*) FROM events").value();
  const Event event = log.Next(SearchExhausted{SweepId(1)});
  ASSERT_TRUE(store->Append({&event, 1}).ok());
  EXPECT_EQ(reader->Number("SELECT count(*) FROM events").value(), before);
}

}  // namespace
}  // namespace attune::server
