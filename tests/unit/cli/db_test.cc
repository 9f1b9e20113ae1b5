#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cli/algorithms.h"
#include "core/brain/brain.h"
#include "server/store/sqlite_store.h"
#include "tests/support/sample_log.h"
#include "tests/unit/cli/command_line.h"

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

TEST_F(Db, CheckPrintsALineForEachPart) {
  const Ran ran = Attune({"check"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("ok   file: "));
  EXPECT_THAT(ran.out, HasSubstr("ok   log: 38 events\n"));
  EXPECT_THAT(ran.out, HasSubstr("ok   table trials: 4 rows\n"));
}

TEST_F(Db, CheckAcceptsTheFile) {
  EXPECT_EQ(Attune({"check"}, folder_ / "attune.db").code, ExitCode::kSuccess);
}

TEST_F(Db, CheckNamesTheReasonIfTheFolderIsNotReachable) {
  const std::string loop = folder_ / "loop";
  std::filesystem::create_symlink(loop, loop);
  const Ran ran = Attune({"check"}, loop + "/data");
  EXPECT_EQ(ran.code, ExitCode::kFailure);
  EXPECT_THAT(ran.err, HasSubstr(std::strerror(ELOOP)));
}

TEST_F(Db, CheckFailsForADamagedLog) {
  auto connection =
      server::sqlite::Connection::Open(folder_ / "attune.db",
                                       server::sqlite::Connection::Mode::kReadWriteCreate, 0)
          .value();
  ASSERT_TRUE(connection->Execute("DELETE FROM events WHERE seq = 5").ok());
  const Ran ran = Attune({"check"});
  EXPECT_EQ(ran.code, ExitCode::kFailure);
  EXPECT_THAT(ran.out, ::testing::AllOf(HasSubstr("bad  log: 4 events: "), HasSubstr("event 5")));
}

// The sample log was written by hand.
TEST_F(Db, CheckOfDecisionsFindsAHandwrittenLog) {
  const Ran ran = Attune({"check", "--decisions"});
  EXPECT_EQ(ran.code, ExitCode::kFailure);
  EXPECT_THAT(ran.out, HasSubstr("ok   log: 38 events\n"));
  EXPECT_THAT(ran.out,
              ::testing::AllOf(HasSubstr("bad  decisions: 1 proposals, 0 verdicts: event 3: "),
                               HasSubstr("s1/0"), HasSubstr("lr=0.1")));
}

// The log of a brain that has started the first trial of a sweep.
std::vector<Event> Decided() {
  SweepSpec spec = server::SampleSpec();
  spec.scheduler = {.name = "fifo", .options = {}};
  Brain brain(AllAlgorithms(), [](const std::string&) { return true; });
  std::vector<Event> log;
  const auto add = [&](std::vector<Event> events) {
    std::ranges::move(events, std::back_inserter(log));
  };
  add(brain.Execute(JoinExecutor{"box", "a", "127.0.0.1", {.cpus = 2}}, Time{1}).value());
  add(brain.Execute(CreateSweep{spec, "", ""}, Time{2}).value());
  add(brain.Advance(Time{3}));
  return log;
}

TEST(DbDecisions, AreDerivedAgain) {
  const server::ScratchFolder folder;
  const std::string file = folder / "attune.db";
  ASSERT_TRUE(server::SqliteStore::Open(file).value()->Append(Decided()).ok());
  const Ran ran = RunAttune({"db", "check", "--decisions", "--data-dir", file});
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.out;
  EXPECT_THAT(ran.out, HasSubstr("ok   decisions: 1 proposals, 0 verdicts\n"));
}

TEST(DbDecisions, NamesTheFirstDifference) {
  const server::ScratchFolder folder;
  const std::string file = folder / "attune.db";
  std::vector<Event> log = Decided();
  for (Event& event : log) {
    if (auto* created = std::get_if<TrialCreated>(&event.fact))
      created->config = server::SampleConfig(0.25);
  }
  ASSERT_TRUE(server::SqliteStore::Open(file).value()->Append(log).ok());
  const Ran ran = RunAttune({"db", "check", "--decisions", "--data-dir", file});
  EXPECT_EQ(ran.code, ExitCode::kFailure);
  EXPECT_THAT(ran.out,
              ::testing::AllOf(HasSubstr("bad  decisions: 1 proposals, 0 verdicts: event 3: "),
                               HasSubstr("s1/0"), HasSubstr("lr=0.25")));
}

TEST_F(Db, CheckIsNotFoundWithoutADatabase) {
  const Ran ran = Attune({"check"}, folder_ / "elsewhere");
  EXPECT_EQ(ran.code, ExitCode::kNotFound);
  EXPECT_THAT(ran.err, HasSubstr("elsewhere"));
}

TEST_F(Db, BackupWritesAnIntactDatabase) {
  const Ran ran = Attune({"backup", folder_ / "copy.db"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
  EXPECT_EQ(Attune({"check"}, folder_ / "copy.db").code, ExitCode::kSuccess);
}

TEST_F(Db, BackupNamesTheReasonIfItCannotWrite) {
  const Ran ran = Attune({"backup", folder_ / "absent/copy.db"});
  EXPECT_EQ(ran.code, ExitCode::kFailure);
  EXPECT_THAT(ran.err,
              ::testing::AllOf(HasSubstr("absent/copy.db"), HasSubstr(std::strerror(ENOENT))));
}

TEST_F(Db, CheckRecognizesAnEmptyDatabase) {
  std::filesystem::create_directories(folder_ / "new");
  std::ofstream(folder_ / "new/attune.db");
  EXPECT_THAT(Attune({"check"}, folder_ / "new").err, HasSubstr("is empty"));
}

TEST_F(Db, ExportWritesToStdoutOrAFile) {
  const Ran shown = Attune({"export", "--what", "trials", "--sweep", "s1"});
  EXPECT_THAT(shown.out, StartsWith("sweep,trial,state,"));
  const Ran ran = Attune({"export", "-o", folder_ / "trials.csv"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
  std::ifstream file(folder_ / "trials.csv");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), shown.out);
}

TEST_F(Db, ExportRefusesMalformedArguments) {
  EXPECT_EQ(Attune({"export", "--sweep", "first"}).code, ExitCode::kUsage);
  EXPECT_EQ(Attune({"export", "--what", "dreams"}).code, ExitCode::kUsage);
}

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(Db, FailedExportKeepsTheOldFile) {
  const std::string file = folder_ / "trials.csv";
  std::ofstream(file) << "of last week\n";
  EXPECT_EQ(Attune({"export", "-o", file}, folder_ / "elsewhere").code, ExitCode::kNotFound);
  EXPECT_EQ(TextOf(file), "of last week\n");
  EXPECT_FALSE(std::filesystem::exists(file + ".part"));
  EXPECT_EQ(Attune({"export", "-o", file}).code, ExitCode::kSuccess);
  EXPECT_THAT(TextOf(file), StartsWith("sweep,trial,state,"));
  EXPECT_FALSE(std::filesystem::exists(file + ".part"));
}

TEST_F(Db, ExportOfAnUnknownSweepIsNotFound) {
  const Ran ran = Attune({"export", "--sweep", "s99"});
  EXPECT_EQ(ran.code, ExitCode::kNotFound);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, HasSubstr("s99"));
}

TEST_F(Db, ExportNamesTheReasonIfItCannotWrite) {
  const Ran ran = Attune({"export", "-o", folder_ / "nowhere/trials.csv"});
  EXPECT_EQ(ran.code, ExitCode::kFailure);
  EXPECT_THAT(ran.err, HasSubstr(std::string("nowhere/trials.csv.part: ") + std::strerror(ENOENT)));
  EXPECT_EQ(Attune({"export", "-o", "/dev/null"}).code, ExitCode::kSuccess);
  EXPECT_FALSE(std::filesystem::is_regular_file("/dev/null"));
}

TEST_F(Db, VacuumFailsWhileAServerRuns) {
  const Ran refused = Attune({"vacuum"});
  EXPECT_EQ(refused.code, ExitCode::kFailure);
  EXPECT_THAT(refused.err, HasSubstr("attune.db"));
  store_.reset();
  EXPECT_EQ(Attune({"vacuum"}).code, ExitCode::kSuccess);
}

}  // namespace
}  // namespace attune::cli
