#include "executor/environments/environment_builder.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>

#include <condition_variable>
#include <thread>

#include "base/lines.h"
#include "executor/processes/environment.h"
#include "system/processes.h"
#include "tests/unit/executor/harness.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;

using gang::ReadFile;
using gang::WriteFile;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Programs in place of uv and python3. Each appends its command to `calls`. A program that installs
// packages waits while the file `hold` exists, fails if `fail` exists, and then changes the
// requirements if `edit` exists.
constexpr std::string_view kInstall = R"sh(
install() {
  echo "packages arrive"
  while [ -e "$FAKES/hold" ]; do
    if [ ! -e "$FAKES/pid" ]; then
      /bin/sleep 1000 &
      echo $! > "$FAKES/pid.new"
      /bin/mv "$FAKES/pid.new" "$FAKES/pid"
    fi
    /bin/sleep 0.01
  done
  if [ -e "$FAKES/kill" ]; then kill -9 $$; fi
  if [ -e "$FAKES/fail" ]; then echo "no such package"; exit 3; fi
  if [ -e "$FAKES/edit" ]; then /bin/rm "$FAKES/edit"; echo scipy >> "$FAKES/requirements.txt"; fi
}
make() { /bin/mkdir -p "$1/bin" "$1/lib/python3.11/site-packages"; }
)sh";
constexpr std::string_view kPython = R"sh(
case "$*" in
  "-I -m venv "*)
    echo "python3 $*" >> "$FAKES/calls"
    make "$4"
    /bin/cp "$FAKES/bin/python3" "$4/bin/" ;;
  "-I -m pip "*) echo "python3 $*" >> "$FAKES/calls"; install ;;
  -I*) echo "python3 -I -c … $4 $5" >> "$FAKES/calls" ;;
  *)
    for line in "$FAKES/bin/python3" "$(/bin/cat "$FAKES/version")" Linux "$FAKES/attune"; do
      echo "description $line"
    done ;;
esac
)sh";
constexpr std::string_view kUv = R"sh(
echo "uv $*" >> "$FAKES/calls"
case "$1" in
  venv) make "$4" ;;
  sync) make "$UV_PROJECT_ENVIRONMENT"; install ;;
  pip) install ;;
esac
)sh";

class EnvironmentBuilderTest : public testing::Test {
 protected:
  EnvironmentBuilderTest() {
    fs::create_directories(fakes() / "bin");
    fs::create_directories(fakes() / "attune");
    WriteFile(fakes() / "attune/launcher.py", "");
    WriteFile(fakes() / "version", "3.11.7");
    WriteFile(requirements(), "numpy\n");
    Install("python3", kPython);
    Install("uv", kUv);
    setenv("PATH", (fakes() / "bin").c_str(), 1);
    setenv("FAKES", fakes().c_str(), 1);
    Start();
  }
  ~EnvironmentBuilderTest() override {
    builder_.reset();
    setenv("PATH", path_.c_str(), 1);
    unsetenv("FAKES");
  }

  fs::path fakes() const { return dir_.path() / "fakes"; }
  fs::path requirements() const { return fakes() / "requirements.txt"; }
  fs::path environments() const { return dir_.path() / "environments"; }

  void Install(const std::string& name, std::string_view text) {
    WriteFile(fakes() / "bin" / name, "#!/bin/sh\n" + std::string(kInstall) + std::string(text),
              true);
  }
  void Set(const std::string& name) { WriteFile(fakes() / name, ""); }
  void Clear(const std::string& name) { fs::remove(fakes() / name); }

  void Start(EnvironmentBuilder::Options options = {.bytes_max = 1 << 20}) {
    builder_.reset();
    options.folder = environments();
    builder_ = std::make_unique<EnvironmentBuilder>(
        std::move(options), processes_,
        [this](const gang::AttemptId& attempt, BuiltEnvironment built) {
          const std::lock_guard lock(mutex_);
          done_[attempt.trial] = std::move(built);
          changed_.notify_all();
        });
  }

  static gang::AttemptId Attempt(uint32_t trial) {
    return {.sweep = 1, .trial = trial, .attempt = 1, .epoch = 1};
  }
  gang::GangSpec Spec(uint32_t trial, const fs::path& file, const fs::path& wheels = {}) {
    gang::GangSpec spec{.attempt = Attempt(trial), .ranks = {{.rank = 2}}};
    spec.program.command = {"python3", "train.py"};
    spec.environment_files = gang::EnvironmentFiles{.python = file, .wheels = wheels};
    spec.attempt_dir = folders_.Attempt(spec.attempt);
    spec.checkpoint_dir = folders_.Checkpoints(spec.attempt);
    spec.files_dir = folders_.Files(spec.attempt);
    return spec;
  }
  void Build(uint32_t trial) { builder_->Build(Spec(trial, requirements())); }

  BuiltEnvironment Await(uint32_t trial) {
    std::unique_lock lock(mutex_);
    const bool came =
        changed_.wait_for(lock, gang::kDeadline, [&] { return done_.contains(trial); });
    return came ? done_.at(trial) : BuiltEnvironment{.error = "nothing came"};
  }
  bool IsDone(uint32_t trial) {
    const std::lock_guard lock(mutex_);
    return done_.contains(trial);
  }
  // Builds, and returns the folder of the environment.
  fs::path BuildNow(uint32_t trial) {
    Build(trial);
    const BuiltEnvironment built = Await(trial);
    EXPECT_EQ(built.error, "");
    return built.folder;
  }

  // The commands that built environments.
  std::vector<std::string> Calls() const {
    const std::string text = ReadFile(fakes() / "calls");
    const auto lines = SplitLines(text);
    return {lines.begin(), lines.end()};
  }
  std::vector<fs::path> Entries() const {
    std::vector<fs::path> entries;
    for (const auto& entry : fs::directory_iterator(environments()))
      entries.push_back(entry.path());
    return entries;
  }
  std::string Log(uint32_t trial) {
    return ReadFile(gang::RankLog(folders_.Attempt(Attempt(trial)), 2));
  }
  // Waits until the held program has started a child; returns the child.
  UniqueFd AwaitHeldChild() {
    EXPECT_TRUE(gang::AwaitCondition([&] { return fs::exists(fakes() / "pid"); }));
    return OpenPidfd(std::stoi(ReadFile(fakes() / "pid")));
  }

  gang::TempDir dir_;
  const std::string path_ = getenv("PATH");
  CommandProcesses processes_;
  gang::Folders folders_{dir_.path() / "data"};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint32_t, BuiltEnvironment> done_;  // by trial; under mutex_
  std::unique_ptr<EnvironmentBuilder> builder_;
};

TEST_F(EnvironmentBuilderTest, BuildsWithUv) {
  const fs::path environment = BuildNow(1);
  EXPECT_EQ(environment.filename(), "venv");
  EXPECT_EQ(environment.parent_path().parent_path(), environments());
  const std::string python = (fakes() / "bin/python3").string();
  EXPECT_THAT(Calls(),
              ElementsAre("uv venv --python " + python + " " + environment.string(),
                          "uv pip install --python " + (environment / "bin/python3").string() +
                              " --compile-bytecode --requirement " + requirements().string()));
}

TEST_F(EnvironmentBuilderTest, BuildsWithPipIfThereIsNoUv) {
  fs::remove(fakes() / "bin/uv");
  const fs::path environment = BuildNow(1);
  EXPECT_THAT(Calls(), ElementsAre("python3 -I -m venv " + environment.string(),
                                   "python3 -I -m pip install --no-input "
                                   "--disable-pip-version-check --progress-bar off --requirement " +
                                       requirements().string()));
}

TEST_F(EnvironmentBuilderTest, InstallsOnlyFromAFolderOfWheels) {
  fs::create_directories(fakes() / "wheels");
  builder_->Build(Spec(1, requirements(), fakes() / "wheels"));
  EXPECT_EQ(Await(1).error, "");
  EXPECT_THAT(Calls().back(),
              HasSubstr(" --no-index --find-links " + (fakes() / "wheels").string() + " "));
}

TEST_F(EnvironmentBuilderTest, SyncsALockWithUv) {
  WriteFile(fakes() / "uv.lock", "version = 1\n");
  WriteFile(fakes() / "pyproject.toml", "[project]\n");
  builder_->Build(Spec(1, fakes() / "uv.lock"));
  EXPECT_EQ(Await(1).error, "");
  EXPECT_THAT(Calls(),
              ElementsAre("uv sync --frozen --no-install-project --compile-bytecode --python " +
                          (fakes() / "bin/python3").string()));
}

TEST_F(EnvironmentBuilderTest, ExportsALockToInstallFromWheels) {
  WriteFile(fakes() / "uv.lock", "version = 1\n");
  WriteFile(fakes() / "pyproject.toml", "[project]\n");
  fs::create_directories(fakes() / "wheels");
  builder_->Build(Spec(1, fakes() / "uv.lock", fakes() / "wheels"));
  EXPECT_EQ(Await(1).error, "");
  EXPECT_THAT(Calls(),
              ElementsAre(HasSubstr("uv venv"), HasSubstr("uv export"), HasSubstr("uv pip")));
}

TEST_F(EnvironmentBuilderTest, ALockNeedsUv) {
  fs::remove(fakes() / "bin/uv");
  WriteFile(fakes() / "uv.lock", "version = 1\n");
  WriteFile(fakes() / "pyproject.toml", "[project]\n");
  builder_->Build(Spec(1, fakes() / "uv.lock"));
  const BuiltEnvironment built = Await(1);
  EXPECT_THAT(built.error, HasSubstr("uv"));
  EXPECT_FALSE(built.is_host_fault);
  EXPECT_THAT(Calls(), IsEmpty());
}

TEST_F(EnvironmentBuilderTest, PipInstallsTheDependenciesOfAProject) {
  fs::remove(fakes() / "bin/uv");
  WriteFile(fakes() / "pyproject.toml", "[project]\ndependencies = []\n");
  builder_->Build(Spec(1, fakes() / "pyproject.toml"));
  const BuiltEnvironment built = Await(1);
  EXPECT_EQ(built.error, "");
  const std::string listed = (built.folder.parent_path() / "requirements.txt").string();
  EXPECT_THAT(Calls(),
              ElementsAre(HasSubstr("-m venv"),
                          "python3 -I -c … " + (fakes() / "pyproject.toml").string() + " " + listed,
                          HasSubstr("--requirement " + listed)));
}

TEST_F(EnvironmentBuilderTest, LinksTheHostsPackageAttune) {
  const fs::path environment = BuildNow(1);
  EXPECT_EQ(fs::read_symlink(environment / "lib/python3.11/site-packages/attune"),
            fakes() / "attune");
}

TEST_F(EnvironmentBuilderTest, ASecondAttemptUsesTheEnvironment) {
  const fs::path environment = BuildNow(1);
  EXPECT_EQ(BuildNow(2), environment);
  EXPECT_THAT(Calls(), SizeIs(2));
  EXPECT_EQ(Log(2), "");
  Start();  // as after a restart of the executor
  EXPECT_EQ(BuildNow(3), environment);
  EXPECT_THAT(Calls(), SizeIs(2));
}

TEST_F(EnvironmentBuilderTest, OtherPackagesOrPythonNeedAnotherEnvironment) {
  const fs::path first = BuildNow(1);
  WriteFile(requirements(), "scipy\n");
  const fs::path second = BuildNow(2);
  EXPECT_NE(second, first);
  WriteFile(fakes() / "version", "3.12.0");
  Start();
  EXPECT_NE(BuildNow(3), second);
}

TEST_F(EnvironmentBuilderTest, AttemptsThatWaitTogetherShareABuild) {
  Set("hold");
  Build(1);
  AwaitHeldChild();
  Build(2);
  ASSERT_TRUE(gang::AwaitCondition([&] { return !Log(2).empty(); }));
  EXPECT_FALSE(IsDone(1));
  Clear("hold");
  EXPECT_EQ(Await(1).error, "");
  EXPECT_EQ(Await(2).folder, Await(1).folder);
  EXPECT_THAT(Calls(), SizeIs(2));
}

TEST_F(EnvironmentBuilderTest, TheLogOfTheFirstRankShowsTheBuild) {
  const fs::path environment = BuildNow(1);
  EXPECT_THAT(Log(1), HasSubstr("building the environment of requirements.txt with uv\n"
                                "packages arrive\n"));
  EXPECT_EQ(ReadFile(environment.parent_path() / "build.log"), "packages arrive\n");
}

TEST_F(EnvironmentBuilderTest, AFailedBuildQuotesTheOutputAndCanBeRepeated) {
  Set("fail");
  Build(1);
  const BuiltEnvironment built = Await(1);
  EXPECT_THAT(built.error, HasSubstr("exit code 3"));
  EXPECT_THAT(built.error, HasSubstr("no such package"));
  EXPECT_FALSE(built.is_host_fault);
  builder_->Release(Attempt(1));
  Clear("fail");
  BuildNow(2);
}

TEST_F(EnvironmentBuilderTest, AKilledToolIsTheHostsFault) {
  Set("kill");
  Build(1);
  const BuiltEnvironment built = Await(1);
  EXPECT_NE(built.error, "");
  EXPECT_TRUE(built.is_host_fault);
}

TEST_F(EnvironmentBuilderTest, AShortDiskIsTheHostsFault) {
  Start({.disk_free_bytes_min = UINT64_MAX});
  Build(1);
  const BuiltEnvironment built = Await(1);
  EXPECT_NE(built.error, "");
  EXPECT_TRUE(built.is_host_fault);
  EXPECT_THAT(Calls(), IsEmpty());
}

TEST_F(EnvironmentBuilderTest, AMissingPythonIsAnError) {
  fs::remove(fakes() / "bin/python3");
  Build(1);
  EXPECT_THAT(Await(1).error, HasSubstr("python3"));
}

TEST_F(EnvironmentBuilderTest, ABuildThatTakesTooLongEnds) {
  Set("hold");
  Start({.timeout = std::chrono::milliseconds(300)});
  Build(1);
  EXPECT_THAT(Await(1).error, HasSubstr("not ready"));
}

TEST_F(EnvironmentBuilderTest, ABuildEndsWhenNoAttemptWaitsForIt) {
  Set("hold");
  Build(1);
  const UniqueFd child = AwaitHeldChild();
  Build(2);
  ASSERT_TRUE(gang::AwaitCondition([&] { return !Log(2).empty(); }));
  builder_->Release(Attempt(1));
  builder_->Release(Attempt(2));
  EXPECT_TRUE(gang::WaitForEnd(child.get()));
  Clear("hold");
  BuildNow(3);
  EXPECT_FALSE(IsDone(1));
  EXPECT_FALSE(IsDone(2));
}

TEST_F(EnvironmentBuilderTest, ABuildContinuesWhileOneAttemptWaits) {
  Set("hold");
  Build(1);
  AwaitHeldChild();
  Build(2);
  builder_->Release(Attempt(1));
  Clear("hold");
  EXPECT_EQ(Await(2).error, "");
  EXPECT_FALSE(IsDone(1));
  EXPECT_THAT(Calls(), SizeIs(2));
}

TEST_F(EnvironmentBuilderTest, AReadyEnvironmentDoesNotWaitForAnotherBuild) {
  const fs::path ready = BuildNow(1);
  WriteFile(fakes() / "other.txt", "scipy\n");
  Set("hold");
  builder_->Build(Spec(2, fakes() / "other.txt"));
  AwaitHeldChild();
  EXPECT_EQ(BuildNow(3), ready);
}

TEST_F(EnvironmentBuilderTest, TheDestructorEndsTheBuild) {
  Set("hold");
  Build(1);
  const UniqueFd child = AwaitHeldChild();
  builder_.reset();
  EXPECT_TRUE(gang::WaitForEnd(child.get()));
  EXPECT_FALSE(IsDone(1));
}

TEST_F(EnvironmentBuilderTest, AKilledExecutorLeavesNoProcessAndTheBuildIsRepeated) {
  Set("hold");
  const Result<Child> host = Spawn({.program = ATTUNE_TEST_ENVIRONMENT_HOST,
                                    .argv = {"host", environments(), requirements()},
                                    .environment = gang::ProgramEnvironment({})});
  ASSERT_TRUE(host.ok());
  const UniqueFd child = AwaitHeldChild();
  kill(host->pid, SIGKILL);
  ASSERT_TRUE(gang::WaitForEnd(host->pidfd.get()));
  Reap(host->pidfd.get());
  EXPECT_TRUE(gang::WaitForEnd(child.get()));
  ASSERT_THAT(Entries(), SizeIs(1));
  const fs::path remains = Entries().front();
  WriteFile(remains / "venv/rest", "");
  Clear("hold");
  const fs::path environment = BuildNow(1);
  EXPECT_EQ(environment, remains / "venv");
  EXPECT_FALSE(fs::exists(environment / "rest"));
}

TEST_F(EnvironmentBuilderTest, RemovesIncompleteEnvironments) {
  fs::create_directories(environments() / "0123456789abcdef/venv");
  fs::create_directories(environments() / ".deleted-0123/venv");
  const fs::path environment = BuildNow(1);
  EXPECT_THAT(Entries(), ElementsAre(environment.parent_path()));
}

TEST_F(EnvironmentBuilderTest, BuildsAgainIfAFileChangesMeanwhile) {
  Set("edit");
  const fs::path environment = BuildNow(1);
  EXPECT_THAT(Calls(), SizeIs(4));
  EXPECT_EQ(BuildNow(2), environment);
}

TEST_F(EnvironmentBuilderTest, DeletesUnusedEnvironmentsBeyondItsLimit) {
  Start({.bytes_max = 0, .kept = std::chrono::seconds(0)});
  const fs::path first = BuildNow(1);
  WriteFile(requirements(), "scipy\n");
  const fs::path second = BuildNow(2);
  EXPECT_TRUE(fs::exists(first));  // in use
  builder_->Release(Attempt(1));
  BuildNow(3);  // runs after the release
  EXPECT_FALSE(fs::exists(first));
  EXPECT_TRUE(fs::exists(second));
}

TEST_F(EnvironmentBuilderTest, KeepsAnEnvironmentForAWhileAfterItsLastUse) {
  Start({.bytes_max = 0, .kept = std::chrono::hours(1)});
  const fs::path first = BuildNow(1);
  WriteFile(requirements(), "scipy\n");
  const fs::path second = BuildNow(2);
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(2);
  const auto mark = [](const fs::path& environment) {
    return environment.parent_path() / "complete";
  };
  fs::last_write_time(mark(first), long_ago);
  builder_->Release(Attempt(1));  // this is its last use
  builder_->Release(Attempt(2));
  BuildNow(3);
  EXPECT_TRUE(fs::exists(first));
  fs::last_write_time(mark(first), long_ago);
  builder_->Release(Attempt(3));
  BuildNow(4);
  EXPECT_FALSE(fs::exists(first));
  EXPECT_TRUE(fs::exists(second));
}

TEST_F(EnvironmentBuilderTest, DeletesUnusedEnvironmentsIfTheDiskIsShort) {
  const fs::path first = BuildNow(1);
  WriteFile(requirements(), "scipy\n");
  const fs::path second = BuildNow(2);
  builder_->Release(Attempt(1));
  BuildNow(3);
  EXPECT_TRUE(fs::exists(first));
  builder_->EvictUnused();
  BuildNow(4);
  EXPECT_FALSE(fs::exists(first));
  EXPECT_TRUE(fs::exists(second));
}

}  // namespace
}  // namespace attune::agent
