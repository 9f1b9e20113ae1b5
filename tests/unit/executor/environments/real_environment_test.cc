// Builds an environment with the Python of this machine, without a network.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <chrono>
#include <future>

#include "executor/environments/environment_builder.h"
#include "executor/gang/preparation.h"
#include "system/command.h"
#include "tests/unit/executor/harness.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;

using gang::WriteFile;

// Writes the wheel of a package with one module and one program.
constexpr std::string_view kMakeWheel = R"(
import sys, zipfile
info = "tiny-1.0.dist-info/"
with zipfile.ZipFile(sys.argv[1] + "/tiny-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("tiny.py", "def main():\n    print('tiny runs')\n")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "entry_points.txt", "[console_scripts]\ntiny = tiny:main\n")
    wheel.writestr(info + "RECORD", "".join(name + ",,\n" for name in wheel.namelist()) + info + "RECORD,,\n")
)";

class RealEnvironmentTest : public testing::Test {
 protected:
  void SetUp() override {
    if (Run({"python3", "-c", "import ensurepip, venv"}).exit_code != 0)
      GTEST_SKIP() << "SKIPPED: python3 with the module venv is not installed";
    fs::create_directories(root() / "wheels");
    fs::create_directories(dir_.path() / "host/attune");
    WriteFile(dir_.path() / "host/attune/__init__.py", "");
    WriteFile(dir_.path() / "host/attune/launcher.py", "");
    ASSERT_EQ(Run({"python3", "-c", std::string(kMakeWheel), (root() / "wheels").string()}).err,
              "");
  }

  fs::path root() const { return dir_.path() / "code"; }

  CommandResult Run(const std::vector<std::string>& argv) {
    const Result<CommandResult> result = commands_.Run(argv);
    return result.ok() ? *result : CommandResult{.exit_code = 1, .err = result.error().message};
  }

  BuiltEnvironment Build(const std::string& file) {
    std::promise<BuiltEnvironment> done;
    EnvironmentBuilder builder(
        {.folder = dir_.path() / "environments", .bytes_max = 1 << 30}, processes_,
        [&](const gang::AttemptId&, BuiltEnvironment built) { done.set_value(std::move(built)); });
    gang::GangSpec spec{.attempt = {1, 1, 1, 1}};
    spec.program.command = {"python3", "-c", "pass"};
    spec.program.environment = {{"PYTHONPATH", (dir_.path() / "host").string()}};
    spec.environment_files = gang::EnvironmentFiles{
        .python = root() / file, .wheels = root() / "wheels", .root = root()};
    builder.Build(spec);
    std::future<BuiltEnvironment> built = done.get_future();
    if (built.wait_for(kBuildWithin) != std::future_status::ready) return {.error = "nothing came"};
    return built.get();
  }

  // A real pip takes seconds, and under a sanitizer on a loaded machine longer.
  static constexpr std::chrono::seconds kBuildWithin{120};

  gang::TempDir dir_;
  CommandProcesses processes_;
  SystemCommands commands_{kBuildWithin};
};

// With Python 3.11 or newer, from a project.
TEST_F(RealEnvironmentTest, InstallsAWheelAndTheHostsPackageAttune) {
  WriteFile(root() / "requirements.txt", "tiny==1.0\n");
  WriteFile(root() / "pyproject.toml",
            "[project]\nname = 'demo'\nversion = '1'\ndependencies = ['tiny']\n");
  const bool reads_projects = Run({"python3", "-c", "import tomllib"}).exit_code == 0;
  const BuiltEnvironment built = Build(reads_projects ? "pyproject.toml" : "requirements.txt");
  ASSERT_EQ(built.error, "");
  EXPECT_EQ(Run({(built.folder / "bin/tiny").string()}).out, "tiny runs\n");
  const CommandResult import = Run({(built.folder / "bin/python3").string(), "-I", "-c",
                                    "import attune.launcher, sys; print(sys.prefix)"});
  EXPECT_EQ(import.out, built.folder.string() + "\n") << import.err;
}

}  // namespace
}  // namespace attune::agent
