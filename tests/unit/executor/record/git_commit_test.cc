#include "executor/record/git_commit.h"

#include "system/command.h"
#include "tests/unit/executor/harness.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;

class GitCommitTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!commands_.Run({"git", "--version"}).ok()) GTEST_SKIP() << "this machine has no git";
  }

  std::string Git(std::vector<std::string> arguments) {
    std::vector<std::string> argv{
        "git", "-C", folder_.path(), "-c", "user.name=a", "-c", "user.email=a@example.com"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    const Result<CommandResult> result = commands_.Run(argv);
    EXPECT_TRUE(result.ok() && result->exit_code == 0) << arguments[0];
    return result.ok() ? result->out : "";
  }
  void MakeCommit() {
    Git({"init", "--quiet"});
    gang::WriteFile(folder_.path() / "train.py", "1\n");
    Git({"add", "train.py"});
    Git({"commit", "--quiet", "--message", "first"});
  }

  std::optional<GitCommit> Read(const fs::path& below = "") {
    return ReadGitCommit(folder_.path() / below, children_, gang::kDeadline);
  }

  gang::TempDir folder_;
  SystemCommands commands_;
  ChildPrograms children_;
};

TEST_F(GitCommitTest, IsThatOfTheRepositoryAroundTheFolder) {
  MakeCommit();
  fs::create_directory(folder_.path() / "below");
  const std::optional<GitCommit> commit = Read("below");
  ASSERT_TRUE(commit);
  EXPECT_EQ(commit->commit + "\n", Git({"rev-parse", "HEAD"}));
  EXPECT_EQ(commit->dirty, false);
}

TEST_F(GitCommitTest, IsDirtyIfTrackedFilesHaveChanged) {
  MakeCommit();
  gang::WriteFile(folder_.path() / "output.txt", "1\n");
  EXPECT_EQ(Read()->dirty, false) << "git does not track this file";
  gang::WriteFile(folder_.path() / "train.py", "2\n");
  EXPECT_EQ(Read()->dirty, true);
}

TEST_F(GitCommitTest, IsUnknownWithoutARepositoryOrACommit) {
  EXPECT_FALSE(Read());
  Git({"init", "--quiet"});
  EXPECT_FALSE(Read());
  EXPECT_FALSE(Read("missing"));
}

TEST_F(GitCommitTest, RunsNoProgramThatTheRepositoryNamesAsMonitor) {
  MakeCommit();
  const fs::path monitor = folder_.path() / "monitor";
  const fs::path trace = folder_.path() / "trace";
  gang::WriteFile(monitor, "#!/bin/sh\n: > " + trace.string() + "\n", true);
  Git({"config", "core.fsmonitor", monitor});
  ASSERT_TRUE(Read());
  EXPECT_FALSE(fs::exists(trace));
}

TEST_F(GitCommitTest, IgnoresVariablesThatNameAnotherRepository) {
  MakeCommit();
  const gang::TempDir other;
  setenv("GIT_DIR", other.path().c_str(), 1);
  EXPECT_TRUE(Read());
  unsetenv("GIT_DIR");
}

}  // namespace
}  // namespace attune::agent
