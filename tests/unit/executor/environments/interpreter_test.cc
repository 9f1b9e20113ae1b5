#include "executor/environments/interpreter.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include "tests/unit/executor/harness.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;

using testing::Contains;
using testing::ElementsAre;
using testing::Key;
using testing::Not;
using testing::Pair;

TEST(UseEnvironment, RunsTheProgramInTheEnvironment) {
  gang::Program program{.command = {"torchrun", "train.py"}, .environment = {{"PATH", "/opt/bin"}}};
  UseEnvironment("/cache/venv", program);
  EXPECT_THAT(program.command, ElementsAre("torchrun", "train.py"));
  EXPECT_THAT(program.environment,
              ElementsAre(Pair("PATH", "/opt/bin"), Pair("PATH", "/cache/venv/bin:/opt/bin"),
                          Pair("VIRTUAL_ENV", "/cache/venv")));
}

TEST(UseEnvironment, ReplacesThePathOfAPython) {
  gang::Program program{.command = {"/usr/bin/python3.11", "/opt/python3"}};
  UseEnvironment("/cache/venv", program);
  EXPECT_THAT(program.command, ElementsAre("/cache/venv/bin/python3", "/opt/python3"));
  program.command = {"/opt/train"};
  UseEnvironment("/cache/venv", program);
  EXPECT_THAT(program.command, ElementsAre("/opt/train"));
}

TEST(UseEnvironment, HidesPackagesOfTheExecutorButNotThoseOfTheSweep) {
  setenv("PYTHONPATH", "/host/packages", 1);
  setenv("PYTHONHOME", "/host/python", 1);
  gang::Program plain{.command = {"python3"}};
  gang::Program with_path{.command = {"python3"}, .environment = {{"PYTHONPATH", "/mine"}}};
  UseEnvironment("/cache/venv", plain);
  UseEnvironment("/cache/venv", with_path);
  unsetenv("PYTHONPATH");
  unsetenv("PYTHONHOME");
  EXPECT_THAT(plain.environment, Contains(Pair("PYTHONPATH", "")));
  EXPECT_THAT(plain.environment, Contains(Pair("PYTHONHOME", "")));
  EXPECT_THAT(with_path.environment, Not(Contains(Pair("PYTHONPATH", ""))));
}

class InterpreterTest : public testing::Test {
 protected:
  InterpreterTest() {
    gang::WriteFile(folder_.path() / "python3", "#!/bin/sh\n", true);
    gang::WriteFile(folder_.path() / "python3.9", "#!/bin/sh\n", true);
    fs::create_directories(folder_.path() / "attune");
  }

  gang::Program Program(std::string command) const {
    return {.command = {std::move(command)}, .environment = {{"PATH", folder_.path().string()}}};
  }
  Interpreter Described() const {
    return {.path = python(),
            .version = "3.11",
            .platform = "Linux",
            .attune = folder_.path() / "attune"};
  }
  fs::path python() const { return folder_.path() / "python3"; }

  gang::TempDir folder_;
  KnownInterpreters known_;
};

TEST_F(InterpreterTest, IsThePythonOfTheCommand) {
  EXPECT_EQ(LocateInterpreter(Program("python3.9")).value(), folder_.path() / "python3.9");
  EXPECT_EQ(LocateInterpreter(Program((folder_.path() / "python3.9").string())).value(),
            folder_.path() / "python3.9");
  EXPECT_EQ(LocateInterpreter(Program("torchrun")).value(), python());
  EXPECT_FALSE(LocateInterpreter(Program("python3.12")).ok());
}

TEST_F(InterpreterTest, ReadsOnlyWholeDescriptions) {
  const auto read = ReadDescription(
      python(), {"a warning", "description /bin/python3", "description 3.11.7 (main) [GCC]",
                 "description Linux x86_64 glibc 2.36", "description "});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->path, "/bin/python3");
  EXPECT_EQ(read->version, "3.11.7 (main) [GCC]");
  EXPECT_EQ(read->platform, "Linux x86_64 glibc 2.36");
  EXPECT_EQ(read->attune, "");
  EXPECT_FALSE(ReadDescription(python(), {"No module named 'importlib.util'"}).ok());
  EXPECT_FALSE(ReadDescription(python(), {}).ok());
}

TEST_F(InterpreterTest, IsKnownUntilItChanges) {
  EXPECT_FALSE(known_.Find(python(), Program("python3")));
  known_.Add(python(), Program("python3"), Described());
  EXPECT_TRUE(known_.Find(python(), Program("python3")));
  gang::Program with_path = Program("python3");
  with_path.environment.emplace_back("PYTHONPATH", "/mine");
  EXPECT_FALSE(known_.Find(python(), with_path));
  fs::remove(python());
  gang::WriteFile(folder_.path() / "new", "#!/bin/sh\n# new\n", true);
  fs::rename(folder_.path() / "new", python());
  EXPECT_FALSE(known_.Find(python(), Program("python3")));
}

TEST_F(InterpreterTest, IsDescribedAgainIfItsPackageAttuneIsGone) {
  known_.Add(python(), Program("python3"), Described());
  fs::remove(folder_.path() / "attune");
  EXPECT_FALSE(known_.Find(python(), Program("python3")));
}

TEST_F(InterpreterTest, ScriptsThatChooseAnInterpreterAreNotRemembered) {
  Interpreter other = Described();
  other.path = folder_.path() / "python3.9";
  known_.Add(python(), Program("python3"), other);
  EXPECT_FALSE(known_.Find(python(), Program("python3")));
}

}  // namespace
}  // namespace attune::agent
