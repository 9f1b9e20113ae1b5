#include "code/collect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/result.h"
#include "tests/support/scratch_folder.h"
#include "tests/unit/code/shared_cases.h"

namespace attune::code {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// There is no git.
class NoCommands final : public Commands {
 public:
  Result<CommandResult> Run(const std::vector<std::string>& argv) override {
    return Error{ErrorCode::kNotFound, argv[0]};
  }
};

class CodeCollect : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text = "text\n") {
    const fs::path file = folder_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  void Git(const std::string& arguments) {
    const std::string command = "git -C '" + folder_.path() +
                                "' -c user.name=a -c user.email=a@b -c init.defaultBranch=main " +
                                arguments + " > /dev/null 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }

  Result<Collected> CollectAll(const CollectOptions& options = {}) {
    return Collect(folder_.path(), options, commands_);
  }

  std::vector<std::string> Paths(const CollectOptions& options = {}) {
    const Result<Collected> collected = CollectAll(options);
    if (!collected.ok()) return {"error: " + collected.error().message};
    std::vector<std::string> paths;
    for (const File& file : collected->manifest.files) paths.push_back(file.path);
    for (const Link& link : collected->manifest.links) paths.push_back(link.path + "->");
    return paths;
  }

  ErrorCode ErrorOf(const CollectOptions& options = {}) {
    const Result<Collected> collected = CollectAll(options);
    return collected.ok() ? ErrorCode::kInternal : collected.error().code;
  }

  testing::ScratchFolder folder_;
  SystemCommands commands_;
};

TEST_F(CodeCollect, MakesTheSnapshotOfTheTestVector) {
  const Json vector = SharedCases("code_snapshot.json");
  for (const Json& file : vector.at("files")) {
    const std::string path = file.at("path");
    Write(path, file.at("text"));
    const mode_t mode = file.value("executable", false) ? 0755 : 0644;
    ASSERT_EQ(chmod((folder_ / path).c_str(), mode), 0);
  }
  for (const Json& link : vector.at("links"))
    fs::create_symlink(link.at("target").get<std::string>(),
                       folder_ / link.at("path").get<std::string>());
  const Result<Collected> collected =
      CollectAll({.include = vector.at("include"), .exclude = vector.at("exclude")});
  ASSERT_TRUE(collected.ok()) << collected.error().message;
  std::string expected;
  for (const std::string line : vector.at("manifest")) expected += line + '\n';
  EXPECT_EQ(ToText(collected->manifest), expected);
  EXPECT_EQ(DigestOf(expected), vector.at("digest").get<std::string>());
}

TEST_F(CodeCollect, AsksGitWhatIsIgnored) {
  Git("init");
  Write(".gitignore", "*.log\nbuild/\n");
  Write("train.py");
  Write("gone.py");
  Git("add .");
  Git("commit -m first");
  fs::remove(folder_ / "gone.py");
  Write("new.py");
  Write("a.log");
  Write("build/program");
  EXPECT_THAT(Paths(), ElementsAre(".gitignore", "new.py", "train.py"));
  EXPECT_THAT(Paths({.include = {"build/program"}, .exclude = {"new.*", ".gitignore"}}),
              ElementsAre("build/program", "train.py"));
  const Result<Collected> collected = CollectAll();
  EXPECT_EQ(collected->commit.size(), 40u);
  EXPECT_TRUE(collected->dirty);
  Git("add -A");
  Git("commit -m second");
  EXPECT_FALSE(CollectAll()->dirty);
}

TEST_F(CodeCollect, RefusesAGitRepositoryWithoutGit) {
  fs::create_directories(folder_ / ".git");
  Write("sub/train.py");
  NoCommands none;
  EXPECT_EQ(Collect(folder_ / "sub", {}, none).error().code, ErrorCode::kUnavailable);
}

TEST_F(CodeCollect, SkipsDataFoldersAndGit) {
  Write("train.py");
  Write("attune-data/attune.db");
  Write("attune-data/trials/log");
  EXPECT_THAT(Paths(), ElementsAre("train.py"));
  EXPECT_THAT(Paths({.include = {"**/log"}}), ElementsAre("train.py"));
  Write("module/.git", "gitdir: /home/ada/.git/worktrees/module\n");
  EXPECT_THAT(Paths({.include = {"*"}}), ElementsAre("train.py"));
  Write("attune.db");
  EXPECT_EQ(ErrorOf(), ErrorCode::kInvalid) << "the folder itself is a data folder";
}

TEST_F(CodeCollect, SkipsTheDataFolderOfAnExecutorAndCachesOfPython) {
  Write("train.py");
  Write("attune-data/folder-id");
  Write("attune-data/executors/a/lock");
  Write("attune-data/join");
  Write("lib/__pycache__/net.pyc");
  EXPECT_THAT(Paths(), ElementsAre("train.py"));
  Write("join", "sha256:" + std::string(64, 'a') + ":token\n");
  EXPECT_EQ(ErrorOf(), ErrorCode::kInvalid) << "executors join with it";
}

TEST_F(CodeCollect, SkipsDataFoldersInAGitRepository) {
  Git("init -q");
  Write("train.py");
  Write("attune-data/attune.db");
  Write("attune-data/token");
  EXPECT_THAT(Paths(), ElementsAre("train.py"));
}

TEST_F(CodeCollect, OnlyFilesOfTheCodeMakeItDirty) {
  Git("init -q");
  Write("train.py");
  Git("add .");
  Git("commit -q -m first");
  Write("attune-data/attune.db");
  Write("notes.txt");
  EXPECT_FALSE(CollectAll({.exclude = {"notes.txt"}})->dirty);
  EXPECT_TRUE(CollectAll()->dirty);
  Write("train.py", "changed\n");
  EXPECT_TRUE(CollectAll({.exclude = {"notes.txt"}})->dirty);
}

TEST_F(CodeCollect, FilesThatLookLikeSecretsAreRefused) {
  Write("train.py");
  Write("conf/.env");
  const Result<Collected> collected = CollectAll();
  ASSERT_EQ(ErrorOf(), ErrorCode::kInvalid);
  EXPECT_THAT(collected.error().message, AllOf(HasSubstr("conf/.env"), HasSubstr("code.include")));
  EXPECT_EQ(ErrorOf({.include = {"conf/*"}}), ErrorCode::kInvalid) << "a wildcard names no file";
  EXPECT_THAT(Paths({.include = {"conf/.env"}}), ElementsAre("conf/.env", "train.py"));
  EXPECT_THAT(Paths({.exclude = {".env"}}), ElementsAre("train.py"));
}

TEST_F(CodeCollect, APrivateKeyIsFoundByItsContent) {
  Write("deploy", "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n");
  EXPECT_EQ(ErrorOf(), ErrorCode::kInvalid);
  EXPECT_THAT(Paths({.include = {"deploy"}}), ElementsAre("deploy"));
}

TEST_F(CodeCollect, TooManyBytesNameTheLargestFiles) {
  Write("small.py", "1");
  Write("big.bin", std::string(5000, 'x'));
  const Result<Collected> collected = CollectAll({.bytes_max = 5000});
  ASSERT_FALSE(collected.ok());
  EXPECT_EQ(collected.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(collected.error().message, HasSubstr("big.bin"));
  EXPECT_TRUE(CollectAll({.bytes_max = 5001}).ok());
}

TEST_F(CodeCollect, LinksOutOfTheFolderAreRefused) {
  Write("train.py");
  fs::create_symlink("/etc/passwd", folder_ / "passwd");
  EXPECT_EQ(ErrorOf(), ErrorCode::kInvalid);
  EXPECT_THAT(Paths({.exclude = {"passwd"}}), ElementsAre("train.py"));
}

TEST_F(CodeCollect, AFolderThatIsGoneIsNamed) {
  const Result<Collected> collected = Collect(folder_ / "gone", {}, commands_);
  EXPECT_EQ(collected.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(collected.error().message, HasSubstr("gone"));
}

TEST_F(CodeCollect, PipesAreSkipped) {
  Write("train.py");
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(Paths(), ElementsAre("train.py"));
}

TEST_F(CodeCollect, RefusesAFolderWithoutFiles) { EXPECT_EQ(ErrorOf(), ErrorCode::kInvalid); }

}  // namespace
}  // namespace attune::code
