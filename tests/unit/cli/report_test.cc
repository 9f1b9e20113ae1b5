// Tests of `attune report`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "system/files.h"
#include "tests/unit/cli/command_line.h"
#include "tests/unit/cli/fake_server.h"

namespace attune::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kReport[] = "<!doctype html>\n<title>s1</title>\0the end";

class ReportCommand : public ::testing::Test {
 protected:
  ReportCommand() {
    server_.WriteTo(folder_.path());
    server_.AnswerText("/sweeps/s1/report", report_, {}, "text/html; charset=utf-8");
  }

  Ran Attune(std::vector<std::string> args) {
    args.insert(args.begin(), {"report", "s1", "--data-dir", folder_.path().string()});
    return RunAttune(args);
  }

  std::vector<std::string> NamesInFolder() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(out_.path()))
      names.push_back(entry.path().filename());
    return names;
  }

  const std::string report_{kReport, sizeof(kReport) - 1};
  FakeServer server_;
  ScratchFolder folder_;
  ScratchFolder out_;
};

TEST_F(ReportCommand, SavesTheFileAndPrintsItsName) {
  const std::string file = out_.path() / "r.html";
  const Ran ran = Attune({"-o", file});
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
  EXPECT_EQ(ran.out, file + "\n");
  EXPECT_EQ(ReadWhole(file).value(), report_);
  EXPECT_THAT(NamesInFolder(), ::testing::ElementsAre("r.html"));
}

TEST_F(ReportCommand, GivesTheFileTheModeOfTheUmask) {
  const mode_t before = umask(027);
  const std::string file = out_.path() / "r.html";
  Attune({"-o", file});
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

TEST_F(ReportCommand, WritesToStdout) {
  const Ran ran = Attune({"-o", "-"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
  EXPECT_EQ(ran.out, report_);
  EXPECT_THAT(ran.err, IsEmpty());
}

TEST_F(ReportCommand, KeepsAFileThatExists) {
  const std::string file = out_.Write("r.html", "older");
  const Ran ran = Attune({"-o", file});
  EXPECT_EQ(ran.code, ExitCode::kFailure);
  EXPECT_THAT(ran.err, HasSubstr(file));
  EXPECT_EQ(ReadWhole(file).value(), "older");
  EXPECT_THAT(server_.requests(), IsEmpty());
}

TEST_F(ReportCommand, LeavesNoFileAfterAnError) {
  server_.Answer("/sweeps/s1/report",
                 ProblemJson(422, "The sweep is too large", "sweep s1 has 10001 trials"), 422);
  const Ran refused = Attune({"-o", out_.path() / "r.html"});
  EXPECT_EQ(refused.code, ExitCode::kUsage);
  EXPECT_THAT(refused.err, HasSubstr("10001 trials"));

  // As from a proxy.
  server_.AnswerText("/sweeps/s1/report", "{}", {});
  EXPECT_EQ(Attune({"-o", out_.path() / "r.html"}).code, ExitCode::kFailure);
  EXPECT_THAT(NamesInFolder(), IsEmpty());
}

TEST_F(ReportCommand, NamesAFolderThatDoesNotExist) {
  const std::string file = out_.path() / "none" / "r.html";
  const Ran ran = Attune({"-o", file});
  EXPECT_EQ(ran.code, ExitCode::kFailure);
  EXPECT_THAT(ran.err, HasSubstr(file));
}

}  // namespace
}  // namespace attune::cli
