#include "executor/record/located_python.h"

#include "tests/unit/executor/harness.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;
using testing::Optional;

class LocatedPythonTest : public testing::Test {
 protected:
  LocatedPythonTest() { MakeProgram("python3"); }

  fs::path MakeProgram(const std::string& name, const std::string& text =
                                                    "\x7f"
                                                    "ELF") {
    gang::WriteFile(bin_.path() / name, text, true);
    return bin_.path() / name;
  }

  std::optional<fs::path> Locate(std::vector<std::string> command) const {
    return LocatePython({.command = std::move(command),
                         .environment = {{"PATH", bin_.path().string() + ":/usr/bin:/bin"}},
                         .working_directory = bin_.path()});
  }

  fs::path python() const { return bin_.path() / "python3"; }

  gang::TempDir bin_;
};

TEST_F(LocatedPythonTest, IsTheCommandItself) {
  EXPECT_THAT(Locate({"python3", "train.py"}), Optional(python()));
  EXPECT_THAT(Locate({"./python3", "train.py"}), Optional(python()));
  EXPECT_THAT(Locate({MakeProgram("python3.13t")}), Optional(bin_.path() / "python3.13t"));
  EXPECT_THAT(Locate({MakeProgram("pypy3")}), Optional(bin_.path() / "pypy3"));
}

TEST_F(LocatedPythonTest, KeepsTheLinkOfAVirtualEnvironment) {
  fs::create_symlink(python(), bin_.path() / "py");
  EXPECT_THAT(Locate({"py", "train.py"}), Optional(bin_.path() / "py"));
}

TEST_F(LocatedPythonTest, IsTheInterpreterOfAScript) {
  MakeProgram("absolute", "#!" + python().string() + " -u\nprint()\n");
  MakeProgram("by_env", "#!/usr/bin/env -S NAME=1 python3 -u\n");
  MakeProgram("nested", "#! " + (bin_.path() / "absolute").string() + "\n");
  for (const char* name : {"absolute", "by_env", "nested"})
    EXPECT_THAT(Locate({name}), Optional(python())) << name;
}

TEST_F(LocatedPythonTest, ReadsScriptsOfPipWithLongPaths) {
  fs::create_directory(bin_.path() / "a b");
  fs::create_symlink(python(), bin_.path() / "a b" / "python");
  const fs::path link = bin_.path() / "a b" / "python";
  MakeProgram("quoted", "#!/bin/sh\n'''exec' \"" + link.string() + "\" \"$0\" \"$@\"\n' '''\n");
  MakeProgram("plain", "#!/bin/sh\n'''exec' " + python().string() + " \"$0\" \"$@\"\n' '''\n");
  EXPECT_THAT(Locate({"quoted"}), Optional(link));
  EXPECT_THAT(Locate({"plain"}), Optional(python()));
}

TEST_F(LocatedPythonTest, IsUnknownForOtherPrograms) {
  MakeProgram("train");
  MakeProgram("shell", "#!/bin/sh\npython3 train.py\n");
  MakeProgram("cut", "#!/bin/sh\n'''exec' ");
  MakeProgram("env_alone", "#!/usr/bin/env\n");
  MakeProgram("empty", "");
  MakeProgram("loop", "#!" + (bin_.path() / "loop").string() + "\n");
  for (const char* name :
       {"train", "shell", "cut", "env_alone", "empty", "loop", "missing", "${param.a}"})
    EXPECT_EQ(Locate({name, "train.py"}), std::nullopt) << name;
  EXPECT_EQ(Locate({}), std::nullopt);
}

TEST_F(LocatedPythonTest, IsUnknownIfTheCommandChoosesItLater) {
  MakeProgram("poetry", "#!" + python().string() + "\n");
  EXPECT_EQ(Locate({"poetry", "run", "python", "train.py"}), std::nullopt);
  EXPECT_THAT(Locate({"poetry", "train.py"}), Optional(python()));
}

}  // namespace
}  // namespace attune::agent
