#include "executor/record/python_packages.h"

#include "tests/unit/executor/harness.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::Pair;

class PythonPackagesTest : public testing::Test {
 protected:
  PythonPackagesTest() { fs::create_directory(site()); }

  // An interpreter that prints `answer` and counts its starts.
  void MakeInterpreter(const std::string& answer) {
    gang::WriteFile(interpreter(),
                    "#!/bin/sh\necho >> " + starts().string() +
                        "\necho a message of the site\nprintf '%s' '" + answer + "'\n",
                    true);
  }
  void MakeInterpreter() {
    MakeInterpreter(R"({"executable":"/opt/python3","version":"3.11.7",)"
                    R"("packages":{"torch":"2.2.0"},"folders":[")" +
                    site().string() + "\"]}");
  }

  std::optional<Python> List(const std::string& folder = "folder") {
    return packages_.List(interpreter(), program_, folder, children_);
  }
  size_t CountStarts() const { return gang::ReadFile(starts()).size(); }

  fs::path interpreter() const { return folder_.path() / "python3"; }
  fs::path site() const { return folder_.path() / "site-packages"; }
  fs::path starts() const { return folder_.path() / "starts"; }

  gang::TempDir folder_;
  gang::Program program_;
  ChildPrograms children_;
  PythonPackages packages_{gang::kDeadline};
};

TEST_F(PythonPackagesTest, ReadsTheAnswerOfTheInterpreter) {
  MakeInterpreter();
  const std::optional<Python> python = List();
  ASSERT_TRUE(python);
  EXPECT_EQ(python->executable, "/opt/python3");
  EXPECT_EQ(python->version, "3.11.7");
  EXPECT_THAT(python->packages, testing::ElementsAre(Pair("torch", "2.2.0")));
}

TEST_F(PythonPackagesTest, StartsTheInterpreterOnceUntilItsPackagesChange) {
  MakeInterpreter();
  ASSERT_TRUE(List());
  ASSERT_TRUE(List());
  EXPECT_EQ(CountStarts(), 1u);
  fs::last_write_time(site(), fs::last_write_time(site()) + std::chrono::seconds(1));
  ASSERT_TRUE(List());
  EXPECT_EQ(CountStarts(), 2u);
  fs::remove(site());
  ASSERT_TRUE(List());
  EXPECT_EQ(CountStarts(), 3u);
}

TEST_F(PythonPackagesTest, StartsTheInterpreterForEachEnvironmentAndFolder) {
  MakeInterpreter();
  ASSERT_TRUE(List());
  program_.environment = {{"VIRTUAL_ENV", "/opt/venv"}};
  ASSERT_TRUE(List());
  ASSERT_TRUE(List("another folder"));
  EXPECT_EQ(CountStarts(), 3u);
}

TEST_F(PythonPackagesTest, IgnoresAnInterpreterThatGivesNoAnswer) {
  for (const char* answer : {"", "Python 2.7", "[]", "{}",
                             R"({"executable":1,"version":"","packages":{},"folders":[]})"}) {
    MakeInterpreter(answer);
    EXPECT_FALSE(List()) << answer;
  }
}

TEST_F(PythonPackagesTest, ListsThePackagesOfARealInterpreter) {
  const auto python = FindProgram("python3", {}, std::getenv("PATH"));
  if (!python.ok()) GTEST_SKIP() << "this machine has no python3";
  const fs::path info = site() / "Some_Package-1.5.dist-info";
  fs::create_directory(info);
  gang::WriteFile(info / "METADATA", "Metadata-Version: 2.1\nName: Some_Package\nVersion: 1.5\n");
  fs::create_directory(site() / "broken-1.dist-info");
  // A module of the program must not replace one of the standard library.
  program_.working_directory = folder_.path();
  gang::WriteFile(folder_.path() / "json.py", "raise SystemExit(1)\n");
  program_.environment = {{"PYTHONPATH", site().string()}};
  const std::optional<Python> listed = packages_.List(*python, program_, folder_.path(), children_);
  ASSERT_TRUE(listed);
  EXPECT_TRUE(listed->version.starts_with("3.")) << listed->version;
  EXPECT_TRUE(fs::path(listed->executable).is_absolute());
  EXPECT_THAT(listed->packages, Contains(Pair("some-package", "1.5")));
}

}  // namespace
}  // namespace attune::agent
