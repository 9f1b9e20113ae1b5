#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "server/store/sqlite_store.h"
#include "tests/unit/cli/command_line.h"
#include "tests/unit/server/store/sample_log.h"

namespace attune::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A data folder whose server runs.
class Db : public ::testing::Test {
 protected:
  Db() : store_(server::SqliteStore::Open(folder_ / "attune.db").value()) {
    EXPECT_TRUE(store_->Append(server::SampleLog().events()).ok());
  }

  Ran Attune(std::vector<std::string> args, const std::string& data_dir) {
    args.insert(args.begin(), "db");
    args.insert(args.end(), {"--data-dir", data_dir});
    return RunAttune(args);
  }
  Ran Attune(std::vector<std::string> args) { return Attune(std::move(args), folder_.path()); }

  server::ScratchFolder folder_;
  std::unique_ptr<server::SqliteStore> store_;
};

TEST_F(Db, CheckSaysALineForEachThingItLookedAt) {
  const Ran ran = Attune({"check"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("ok   file: "));
  EXPECT_THAT(ran.out, HasSubstr("ok   log: 40 events\n"));
  EXPECT_THAT(ran.out, HasSubstr("ok   table trials: 4 rows\n"));
}

TEST_F(Db, CheckTakesTheFileAsWell) {
  EXPECT_EQ(Attune({"check"}, folder_ / "attune.db").code, ExitCode::kSuccess);
}

TEST_F(Db, CheckFailsWhereSomethingIsBad) {
  auto connection =
      server::sqlite::Connection::Open(folder_ / "attune.db",
                                       server::sqlite::Connection::Mode::kReadWriteCreate, 0)
          .value();
  ASSERT_TRUE(connection->Execute("DELETE FROM events WHERE seq = 5").ok());
  const Ran ran = Attune({"check"});
  EXPECT_EQ(ran.code, ExitCode::kFailure);
  EXPECT_THAT(ran.out, HasSubstr("bad  log: 4 events: the log goes from event 4 to 6"));
}

// The sample was made by hand, not by a brain.
TEST_F(Db, CheckOfDecisionsNamesTheFirstThatDiffers) {
  const Ran ran = Attune({"check", "--decisions"});
  EXPECT_EQ(ran.code, ExitCode::kFailure);
  EXPECT_THAT(ran.out, HasSubstr("bad  decisions: "));
  EXPECT_THAT(ran.out, HasSubstr(": event "));
}

TEST_F(Db, WithoutADatabaseItIsNotFound) {
  const Ran ran = Attune({"check"}, folder_ / "elsewhere");
  EXPECT_EQ(ran.code, ExitCode::kNotFound);
  EXPECT_THAT(ran.err, HasSubstr("elsewhere"));
}

TEST_F(Db, BackupWritesAFileThatIsSound) {
  const Ran ran = Attune({"backup", folder_ / "copy.db"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
  EXPECT_EQ(Attune({"check"}, folder_ / "copy.db").code, ExitCode::kSuccess);
}

TEST_F(Db, ExportGoesToStdoutOrToAFile) {
  const Ran shown = Attune({"export", "--what", "trials", "--sweep", "s1"});
  EXPECT_THAT(shown.out, StartsWith("sweep,trial,state,"));
  const Ran ran = Attune({"export", "-o", folder_ / "trials.csv"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
  std::ifstream file(folder_ / "trials.csv");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), shown.out);
}

TEST_F(Db, ExportRefusesWhatIsNoSweep) {
  EXPECT_EQ(Attune({"export", "--sweep", "first"}).code, ExitCode::kUsage);
  EXPECT_EQ(Attune({"export", "--what", "dreams"}).code, ExitCode::kUsage);
}

TEST_F(Db, VacuumWaitsForNoServerButSaysThatOneRuns) {
  const Ran refused = Attune({"vacuum"});
  EXPECT_EQ(refused.code, ExitCode::kFailure);
  EXPECT_THAT(refused.err, HasSubstr("stop the server"));
  store_.reset();
  EXPECT_EQ(Attune({"vacuum"}).code, ExitCode::kSuccess);
}

}  // namespace
}  // namespace attune::cli
