#include "code/patch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/result.h"
#include "system/files.h"
#include "tests/support/scratch_folder.h"
#include "tests/unit/code/folder_snapshot.h"

namespace attune::code {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Sets a variable of the environment during a test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (before_.empty()) {
      unsetenv(name_);
    } else {
      setenv(name_, before_.c_str(), 1);
    }
  }

 private:
  const char* const name_;
  std::string before_;
};

std::string NewFile(const std::string& path, const std::string& mode = "100644") {
  return "diff --git a/" + path + " b/" + path + "\nnew file mode " + mode +
         "\n--- /dev/null\n+++ b/" + path + "\n@@ -0,0 +1 @@\n+new\n";
}

std::string NewLink(const std::string& path, const std::string& target) {
  return "diff --git a/" + path + " b/" + path + "\nnew file mode 120000\n--- /dev/null\n+++ b/" +
         path + "\n@@ -0,0 +1 @@\n+" + target + "\n\\ No newline at end of file\n";
}

std::string Rename(const std::string& from, const std::string& to) {
  return "diff --git a/" + from + " b/" + to + "\nsimilarity index 100%\nrename from " + from +
         "\nrename to " + to + "\n";
}

std::string Change(const std::string& path, const std::string& from, const std::string& to) {
  return "diff --git a/" + path + " b/" + path + "\n--- a/" + path + "\n+++ b/" + path +
         "\n@@ -1 +1 @@\n-" + from + "\n+" + to + "\n";
}

class CodePatch : public ::testing::Test {
 protected:
  CodePatch() {
    Write("train.py", "lr = 0.1\n");
    Write("lib/net.py", "layers = 3\n");
    Write("run.sh", "#!/bin/sh\n", true);
    Write("empty", "");
  }

  void Write(const std::string& path, const std::string& text, bool executable = false) {
    WriteFile(fs::path(before_ / path), text, executable);
  }

  Result<Patched> Apply(const std::string& patch, uint64_t bytes_max = 1'000'000) {
    fs::remove_all(scratch_ / "work/inner");
    fs::create_directories(scratch_ / "work/inner");
    const FolderSnapshot before(before_.path());
    const auto stored = [&](const std::string& hash) { return before.files.at(hash); };
    return ApplyPatch(patch, before.manifest, stored, scratch_ / "work/inner", bytes_max);
  }

  // The text of a file after the patch.
  std::string TextAfter(const Result<Patched>& patched, const std::string& path) {
    if (!patched.ok()) return "error: " + patched.error().message;
    for (const File& file : patched->manifest.files) {
      if (file.path != path) continue;
      const auto made = patched->files.find(file.sha256);
      return made == patched->files.end() ? "unchanged" : ReadWhole(made->second).value();
    }
    return "absent";
  }

  // Expects that the patch is refused and that nothing was written outside of the scratch folder.
  void ExpectRefused(const std::string& patch) {
    SCOPED_TRACE(patch.substr(0, 500));
    const Result<Patched> patched = Apply(patch);
    ASSERT_FALSE(patched.ok());
    EXPECT_EQ(patched.error().code, ErrorCode::kInvalid) << patched.error().message;
    std::vector<std::string> entries;
    for (const char* folder : {"", "work"}) {
      for (const auto& entry : fs::directory_iterator(scratch_ / folder))
        entries.push_back(entry.path().filename());
    }
    EXPECT_THAT(entries, ElementsAre("work", "inner"));
  }

  testing::ScratchFolder before_;
  testing::ScratchFolder scratch_;
};

TEST_F(CodePatch, ChangesOnlyTheFilesThatItNames) {
  const Result<Patched> patched = Apply(Change("train.py", "lr = 0.1", "lr = 0.2"));
  EXPECT_EQ(TextAfter(patched, "train.py"), "lr = 0.2\n");
  EXPECT_EQ(TextAfter(patched, "lib/net.py"), "unchanged");
  EXPECT_EQ(patched->files.size(), 1u);
  EXPECT_TRUE(ParseManifest(ToText(patched->manifest)).ok());
}

TEST_F(CodePatch, KeepsAndChangesModes) {
  Result<Patched> patched = Apply(Change("run.sh", "#!/bin/sh", "#!/bin/bash"));
  EXPECT_TRUE(patched->manifest.files.at(2).executable);
  patched = Apply("diff --git a/run.sh b/run.sh\nold mode 100755\nnew mode 100644\n");
  ASSERT_TRUE(patched.ok()) << patched.error().message;
  EXPECT_FALSE(patched->manifest.files.at(2).executable);
}

TEST_F(CodePatch, AcceptsTheFormatsOfOtherTools) {
  EXPECT_EQ(
      TextAfter(Apply("From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\n"
                      "From: Ada <ada@example.com>\nSubject: [PATCH] Train faster\n\n---\n"
                      " train.py | 2 +-\n\n" +
                      Change("train.py", "lr = 0.1", "lr = 0.2") + "-- \n2.39.5\n\n"),
                "train.py"),
      "lr = 0.2\n");
  for (const std::string from : {"train.py.orig", "old/train.py"}) {
    const std::string to = from == "old/train.py" ? "new/train.py" : "train.py";
    EXPECT_EQ(TextAfter(Apply("--- " + from + "\t2024-01-01 10:00:00\n+++ " + to +
                              "\t2024-01-01 11:00:00\n@@ -1 +1 @@\n-lr = 0.1\n+lr = 0.2\n"),
                        "train.py"),
              "lr = 0.2\n");
  }
}

TEST_F(CodePatch, NamesTheFileAndLineThatDiffer) {
  Write("train.py", "a\nb\nc\nlr = 0.3\n");
  const Result<Patched> patched =
      Apply("--- a/train.py\n+++ b/train.py\n@@ -3,2 +3,2 @@\n c\n-lr = 0.1\n+lr = 0.2\n");
  ASSERT_FALSE(patched.ok());
  EXPECT_EQ(patched.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(patched.error().message, HasSubstr("does not apply: train.py:3 has other lines."));
}

TEST_F(CodePatch, RefusesTextsWithoutAChange) {
  for (const std::string text : {"", " \n\t\r\n", "hello\n", "diff --git a/train.py b/train.py\n"})
    ExpectRefused(text);
  ExpectRefused("--- a/train.py\n+++ b/train.py\n@@ -1,5 +1 @@\n-lr = 0.1\n");  // cut
  ExpectRefused(Change("gone.py", "a", "b"));
  ExpectRefused(NewFile("train.py"));
  ExpectRefused(
      "diff --git a/data b/data\nnew file mode 100644\nindex 0000000..1111111\nBinary "
      "files /dev/null and b/data differ\n");
}

TEST_F(CodePatch, RefusesPathsOutsideOfTheSnapshot) {
  for (const std::string path : {"../x", "../../x", "a/../../x", "lib/../../../x", "./x",
                                 ".git/hooks/x", ".GIT/config", "lib/.git/config", ".git"}) {
    ExpectRefused(NewFile(path));
    ExpectRefused(Rename("train.py", path));
    ExpectRefused(Rename(path, "y"));
    ExpectRefused(Change(path, "a", "b"));
  }
  for (const std::string name : {"a\\001b", "a\\377b", "a\\nb", "a\\tb"}) {
    ExpectRefused("diff --git \"a/" + name + "\" \"b/" + name + "\"\nnew file mode 100644\n");
  }
  const std::string outside = scratch_ / "work/outside";
  ExpectRefused("diff --git a/" + outside + " b/" + outside + "\nnew file mode 100644\n");
}

TEST_F(CodePatch, StripsTheFirstPartOfAbsolutePaths) {
  const Result<Patched> patched =
      Apply("--- /dev/null\n+++ " + (scratch_ / "work/outside") + "\n@@ -0,0 +1 @@\n+new\n");
  EXPECT_EQ(TextAfter(patched, scratch_.path().substr(1) + "/work/outside"), "new\n");
  EXPECT_FALSE(fs::exists(scratch_ / "work/outside"));
}

TEST_F(CodePatch, WritesNothingThroughLinks) {
  fs::create_symlink("lib", before_ / "link");
  Write("a/b/text", "text\n");
  fs::create_symlink("../..", before_ / "a/b/up");
  ExpectRefused(NewFile("link/x"));
  ExpectRefused(Change("link/net.py", "layers = 3", "layers = 4"));
  ExpectRefused(NewLink("out", "..") + NewFile("out/x"));
  ExpectRefused(NewLink("out", scratch_ / "work") + NewFile("out/x"));
  ExpectRefused(Rename("a/b/up", "up") + NewFile("up/x"));
  ExpectRefused(NewFile("up/x") + Rename("a/b/up", "up"));
  ExpectRefused(NewLink("l1", "..") + Rename("l1", "l2") + NewFile("l2/x"));
  std::string copy = Rename("a/b/up", "up");
  for (size_t at; (at = copy.find("rename")) != copy.npos;) copy.replace(at, 6, "copy");
  ExpectRefused(copy + NewFile("up/x"));
}

TEST_F(CodePatch, RefusesResultsThatAManifestRefuses) {
  ExpectRefused(NewLink("out", "../elsewhere"));
  ExpectRefused(NewLink("out", "/etc/passwd"));
  ExpectRefused(NewLink("nothing", "nothing-there"));
  ExpectRefused(NewFile("Train.py"));
  ExpectRefused(NewFile("LIB/x.py"));
  ExpectRefused(NewFile("lib"));
  ExpectRefused(NewFile("train.py/x"));
  fs::create_symlink("train.py", before_ / "link");
  ExpectRefused(Rename("train.py", "main.py"));  // the link leads to nothing
}

TEST_F(CodePatch, ReplacesLinksAndFolders) {
  fs::create_symlink("lib", before_ / "link");
  Result<Patched> patched = Apply(
      "diff --git a/link b/link\ndeleted file mode 120000\n--- a/link\n+++ /dev/null\n"
      "@@ -1 +0,0 @@\n-lib\n\\ No newline at end of file\n" +
      NewFile("link/x"));
  EXPECT_EQ(TextAfter(patched, "link/x"), "new\n");
  fs::remove(before_ / "link");
  patched = Apply(
      "diff --git a/lib/net.py b/lib/net.py\ndeleted file mode 100644\n--- a/lib/net.py\n"
      "+++ /dev/null\n@@ -1 +0,0 @@\n-layers = 3\n" +
      NewLink("lib", "train.py"));
  ASSERT_TRUE(patched.ok()) << patched.error().message;
  EXPECT_EQ(patched->manifest.links, (std::vector<Link>{{"lib", "train.py"}}));
}

TEST_F(CodePatch, RenamesFilesAndLinks) {
  fs::create_symlink("lib", before_ / "link");
  const Result<Patched> patched =
      Apply(Rename("link", "other") + Rename("train.py", "lib/main.py"));
  ASSERT_TRUE(patched.ok()) << patched.error().message;
  EXPECT_EQ(patched->manifest.links, (std::vector<Link>{{"other", "lib"}}));
  EXPECT_EQ(TextAfter(patched, "lib/main.py"), "lr = 0.1\n");
  EXPECT_EQ(TextAfter(patched, "train.py"), "absent");
}

TEST_F(CodePatch, LimitsSizes) {
  EXPECT_EQ(Apply(std::string(kPatchBytesMax + 1, 'x')).error().code, ErrorCode::kInvalid);
  const std::string added(1'000, 'x');
  const std::string patch = Change("train.py", "lr = 0.1", added);
  const uint64_t bytes = added.size() + 1 + std::string("layers = 3\n#!/bin/sh\n").size();
  EXPECT_TRUE(Apply(patch, bytes).ok());
  EXPECT_EQ(Apply(patch, bytes - 1).error().code, ErrorCode::kInvalid);
  std::string many;
  for (size_t i = 0; i <= kEntriesMax; ++i) {
    const std::string path = std::to_string(i);
    many += "diff --git a/" + path + " b/" + path + "\nnew file mode 100644\n";
  }
  ExpectRefused(many);
}

TEST_F(CodePatch, HeedsAttributesOfTheSnapshot) {
  Write(".gitattributes", "*.bat text eol=crlf\n");
  Write("lib/run.bat", "old\r\n");
  EXPECT_EQ(TextAfter(Apply(Change("lib/run.bat", "old", "new")), "lib/run.bat"), "new\r\n");
}

TEST_F(CodePatch, IgnoresTheConfigurationOfGit) {
  WriteFile(scratch_ / "home/.gitconfig", "[apply]\n\twhitespace = error-all\n");
  const Variable home("HOME", scratch_ / "home");
  const Variable folder("GIT_DIR", "/nowhere");
  const Variable count("GIT_CONFIG_COUNT", "one");
  EXPECT_EQ(TextAfter(Apply(Change("train.py", "lr = 0.1", "lr = 0.2 ")), "train.py"),
            "lr = 0.2 \n");
}

TEST_F(CodePatch, AcceptsARelativeScratchFolder) {
  const FolderSnapshot before(before_.path());
  const auto stored = [&](const std::string& hash) { return fs::relative(before.files.at(hash)); };
  const Result<Patched> patched =
      ApplyPatch(Change("train.py", "lr = 0.1", "lr = 0.2"), before.manifest, stored,
                 fs::relative(scratch_.path()), 1'000'000);
  EXPECT_EQ(TextAfter(patched, "train.py"), "lr = 0.2\n");
}

TEST_F(CodePatch, SaysThatGitIsMissing) {
  const Variable path("PATH", scratch_.path());
  EXPECT_EQ(Apply(NewFile("x")).error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace attune::code
