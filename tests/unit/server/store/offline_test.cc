#include "server/store/offline/offline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/result.h"
#include "base/version.h"
#include "server/store/offline/check.h"
#include "server/store/offline/export.h"
#include "server/store/sqlite_store.h"
#include "tests/support/mentions.h"
#include "tests/support/sample_log.h"

namespace attune::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class Offline : public ::testing::Test {
 protected:
  Offline() : store_(SqliteStore::Open(path_).value()) {
    EXPECT_TRUE(store_->Append(log_.events()).ok());
  }

  void Execute(const std::string& sql) {
    auto connection =
        sqlite::Connection::Open(path_, sqlite::Connection::Mode::kReadWriteCreate, 0).value();
    const Status done = connection->Execute(sql);
    ASSERT_TRUE(done.ok()) << done.error().message;
  }

  static std::vector<std::string> Faults(const std::string& path) {
    const auto findings = CheckDatabase(path);
    if (!findings.ok()) return {findings.error().message};
    std::vector<std::string> faults;
    for (const Finding& finding : *findings) {
      if (finding.fault) faults.push_back(finding.what + ": " + *finding.fault);
    }
    return faults;
  }

  std::vector<std::string> Lines(const ExportOptions& options) {
    std::vector<std::string> lines;
    const Status done =
        Export(path_, options, [&](std::string_view line) { lines.emplace_back(line); });
    EXPECT_TRUE(done.ok()) << done.error().message;
    return lines;
  }

  ScratchFolder folder_;
  const std::string path_ = folder_ / "attune.db";
  SampleLog log_;
  std::unique_ptr<SqliteStore> store_;  // open, as in a running server
};

TEST_F(Offline, ANonDatabaseIsNotReportedAsAFailedWrite) {
  const std::string letter = folder_ / "letter.db";
  std::ofstream(letter) << std::string(8192, 'x');
  EXPECT_THAT(Faults(letter), ElementsAre(HasSubstr("not a database")));
}

TEST_F(Offline, AnIntactDatabaseHasNoFaultsWhileItsServerRuns) {
  EXPECT_THAT(Faults(path_), IsEmpty());
  const auto findings = CheckDatabase(path_);
  ASSERT_GT(findings->size(), 2u);
  EXPECT_EQ((*findings)[1].what, "log");
  EXPECT_EQ((*findings)[1].seen, std::to_string(log_.events().size()) + " events");
}

TEST_F(Offline, ALostEventIsFound) {
  Execute("DELETE FROM events WHERE seq = 5");
  ASSERT_THAT(Faults(path_), ::testing::Not(IsEmpty()));
  EXPECT_THAT(Faults(path_).front(), HasSubstr("event 5"));
}

TEST_F(Offline, AnUnreadablePayloadIsFoundAndNamed) {
  Execute("UPDATE events SET payload = '[1,' WHERE seq = 7");
  EXPECT_THAT(Faults(path_).front(), testing::Mentions("event 7: ", "trial_reported"));
}

TEST_F(Offline, ATableThatDiffersFromTheLogIsFound) {
  Execute(
      "UPDATE trials SET best = 9 WHERE number = 0; DELETE FROM attempts WHERE trial = 1;"
      "INSERT INTO logged_metrics (sweep, name) VALUES (1, 'nobody logs it')");
  EXPECT_THAT(Faults(path_), ElementsAre(testing::Mentions("table trials: ", "2"),
                                         testing::Mentions("table attempts: ", "1"),
                                         testing::Mentions("table logged_metrics: ", "1")));
}

TEST_F(Offline, AnUnreadableTableOfUnshownEventsIsAFault) {
  Execute("ALTER TABLE unshown RENAME COLUMN reason TO why");
  EXPECT_THAT(Faults(path_), ElementsAre(testing::Mentions("tables: ", "no such column")));
  Execute("DROP TABLE unshown");
  EXPECT_THAT(Faults(path_), ElementsAre(testing::Mentions("tables: ", "no such table")));
}

TEST_F(Offline, ADamagedPageIsFound) {
  store_.reset();
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(1 * 4096 + 8);  // the root of the log
  file << std::string(2048, '\xff');
  file.close();
  ASSERT_THAT(Faults(path_), ::testing::Not(IsEmpty()));
  EXPECT_THAT(Faults(path_).front(), HasSubstr("restore"));
}

TEST_F(Offline, MissingAndForeignFilesAreDistinguished) {
  EXPECT_EQ(CheckDatabase(folder_ / "other.db").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "other.db"));
  std::ofstream(folder_ / "text.db") << std::string(8192, 'x');
  EXPECT_EQ(CheckDatabase(folder_ / "text.db").error().code, ErrorCode::kCorrupt);
}

TEST_F(Offline, TablesOfAnotherVersionMustBeRebuiltFirst) {
  Execute("UPDATE written_by SET version = '0.0.9', tables = 1");
  const auto findings = CheckDatabase(path_);
  ASSERT_FALSE(findings.ok());
  EXPECT_THAT(findings.error().message, testing::Mentions("0.0.9", "attune serve"));
}

TEST_F(Offline, AnotherFormatIsRefusedWithBothVersions) {
  Execute("UPDATE written_by SET version = '9.8.7'; PRAGMA user_version = 9");
  const auto findings = CheckDatabase(path_);
  ASSERT_FALSE(findings.ok());
  EXPECT_THAT(findings.error().message, testing::Mentions("format 9", "9.8.7"));
  EXPECT_THAT(findings.error().message, HasSubstr(kVersion));
}

TEST_F(Offline, DecisionsOfAMissingDatabaseAreNotFound) {
  Algorithms none;
  const auto finding = CheckDecisions(folder_ / "other.db", none);
  ASSERT_FALSE(finding.ok());
  EXPECT_EQ(finding.error().code, ErrorCode::kNotFound);
}

TEST_F(Offline, ABackupIsIntactAndHasAllCommittedEvents) {
  const std::string copy = folder_ / "copy.db";
  ASSERT_TRUE(Backup(path_, copy).ok());
  EXPECT_THAT(Faults(copy), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(copy + ".partial"));
  auto store = SqliteStore::Open(copy);
  ASSERT_TRUE(store.ok()) << store.error().message;
  EXPECT_EQ((*store)->LastSeq(), store_->LastSeq());
  const Event event = log_.Next(SearchExhausted{SweepId(1)});
  EXPECT_TRUE(store_->Append({&event, 1}).ok());
}

TEST_F(Offline, ABackupNeverReplacesAFile) {
  std::ofstream(folder_ / "copy.db") << "precious";
  const Status done = Backup(path_, folder_ / "copy.db");
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::kConflict);
  EXPECT_EQ(std::filesystem::file_size(folder_ / "copy.db"), 8u);
}

TEST_F(Offline, ABackupOfADamagedDatabaseIsRefusedAndLeavesNothing) {
  Execute("DELETE FROM events WHERE seq = 5");
  const Status done = Backup(path_, folder_ / "copy.db");
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::kCorrupt);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "copy.db"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "copy.db.partial"));
}

TEST_F(Offline, VacuumIsRefusedWhileAServerRunsAndGivesSpaceBackAfterwards) {
  for (int i = 0; i < 20; ++i) {
    const Event event =
        log_.Next(TrialRequeued{{SweepId(1), TrialNumber(3)}, std::string(50'000, 'x')});
    ASSERT_TRUE(store_->Append({&event, 1}).ok());
  }
  const Status refused = Vacuum(path_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);

  store_.reset();
  Execute("CREATE TABLE waste AS SELECT randomblob(1000000) AS bytes; DROP TABLE waste");
  const auto before = std::filesystem::file_size(path_);
  const Status done = Vacuum(path_);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_LT(std::filesystem::file_size(path_), before);
  EXPECT_THAT(Faults(path_), IsEmpty());
}

TEST_F(Offline, ExportedTrialsHaveNotesAndTags) {
  const Event event = log_.Next(TrialAnnotated{{SweepId(1), TrialNumber(1)},
                                               {.note = "two\nlines", .tags = {{"best", "lr"}}}});
  ASSERT_TRUE(store_->Append({&event, 1}).ok());
  const auto lines = Lines({.what = ExportOptions::What::kTrials});
  EXPECT_THAT(lines[2], HasSubstr(",\"two\nlines\",\"best,lr\","));
  EXPECT_THAT(Faults(path_), IsEmpty());
}

TEST_F(Offline, CsvHasAColumnForEachParameterAndMetric) {
  const auto lines = Lines({.what = ExportOptions::What::kTrials});
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(
      lines[0],
      "sweep,trial,state,reason,created,ended,attempts,step,seconds,best,best_step,"
      "checkpoint,note,tags,config.lr,config.width,config.optimizer,config.batch,metrics.accuracy,"
      "metrics.loss");
  EXPECT_THAT(lines[1], StartsWith("1,0,completed,\"reached step 9, the last\","));
  EXPECT_THAT(lines[1], HasSubstr(",2,9,10.25,0.871,9,/data/"));
  EXPECT_THAT(lines[4], ::testing::EndsWith("0.30000000000000004,32,adamw,128,-inf,"
                                            "0.3333333333333333"));
}

TEST_F(Offline, JsonLinesKeepObjects) {
  const auto lines =
      Lines({.what = ExportOptions::What::kReports, .format = ExportOptions::Format::kJsonl});
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(lines[0],
            R"({"sweep":1,"trial":0,"attempt":1,"step":1,"time":"2026-11-21T10:00:07.000000Z",)"
            R"("seconds":1.5,"metrics":{"accuracy":0.5,"loss":0.3333333333333333}})");
}

TEST_F(Offline, ExportedEventsAreTheWholeLogOrASweeps) {
  EXPECT_EQ(Lines({.what = ExportOptions::What::kEvents}).size(), log_.events().size() + 1);
  EXPECT_EQ(Lines({.what = ExportOptions::What::kEvents, .sweep = SweepId(1)}).size(),
            log_.events().size() - 1);  // without the two events of executors, and with the header
  EXPECT_EQ(Lines({.what = ExportOptions::What::kEvents, .sweep = SweepId(2)}).size(), 1u);
}

TEST_F(Offline, ExportedEventsContainEnvironmentsOnlyOnRequest) {
  ExportOptions options{.what = ExportOptions::What::kEvents};
  const auto contains = [&](const std::string& word) {
    for (const std::string& line : Lines(options))
      if (line.find(word) != line.npos) return true;
    return false;
  };
  EXPECT_FALSE(contains("NCCL_DEBUG"));
  EXPECT_FALSE(contains("name: fashion-mnist #"));
  EXPECT_TRUE(contains("parameters"));
  options.with_env = true;
  EXPECT_TRUE(contains("NCCL_DEBUG"));
  EXPECT_TRUE(contains("name: fashion-mnist #"));
}

}  // namespace
}  // namespace attune::server
