#include "executor/environments/container_images.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "base/lines.h"
#include "executor/environments/environment_builder.h"
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
using testing::StartsWith;

// In place of each engine. A pull waits while the file `hold` exists, and fails if `fail` exists;
// with `down`, the engine does not work at all.
constexpr std::string_view kEngine = R"sh(#!/bin/sh
echo "${0##*/} $*" >> "$FAKES/calls"
if [ -e "$FAKES/down" ]; then echo "no daemon"; exit 1; fi
case "$1" in
  image)
    if [ ! -e "$FAKES/image" ]; then exit 1; fi
    echo "sha256:ab12 train@sha256:cd34 " ;;
  pull)
    echo "layer 1 of 2"
    if [ -e "$FAKES/hold" ]; then
      echo $$ > "$FAKES/pid.new"
      /bin/mv "$FAKES/pid.new" "$FAKES/pid"
      exec /bin/sleep 1000
    fi
    if [ -e "$FAKES/fail" ]; then echo "manifest unknown"; exit 125; fi
    echo data > "$FAKES/image"
    if [ "$2" = --force ]; then echo data > "$3"; fi ;;
esac
)sh";

class ContainerImagesTest : public testing::Test {
 protected:
  ContainerImagesTest() {
    setenv("PATH", dir_.path().c_str(), 1);
    setenv("FAKES", dir_.path().c_str(), 1);
    Start();
  }
  ~ContainerImagesTest() override {
    builder_.reset();
    setenv("PATH", path_.c_str(), 1);
    unsetenv("FAKES");
  }

  void Start() {
    builder_.reset();
    builder_ = std::make_unique<EnvironmentBuilder>(
        EnvironmentBuilder::Options{.folder = dir_.path() / "environments",
                                    .images = dir_.path() / "images",
                                    .bytes_max = 1 << 20},
        processes_, [this](const gang::AttemptId& attempt, BuiltEnvironment built) {
          const std::lock_guard lock(mutex_);
          done_[attempt.trial] = std::move(built);
          changed_.notify_all();
        });
  }
  void Install(const std::string& engine) {
    WriteFile(dir_.path() / engine, std::string(kEngine), true);
  }
  void Set(const std::string& name) { WriteFile(dir_.path() / name, ""); }

  static gang::AttemptId Attempt(uint32_t trial) {
    return {.sweep = 1, .trial = trial, .attempt = 1, .epoch = 1};
  }
  void Fetch(uint32_t trial, const std::string& image = "train:1",
             const std::string& engine = "any") {
    gang::GangSpec spec{.attempt = Attempt(trial), .ranks = {{.rank = 2}}};
    spec.container = gang::Container{.image = image, .engine = engine};
    spec.attempt_dir = folders_.Attempt(spec.attempt);
    spec.checkpoint_dir = folders_.Checkpoints(spec.attempt);
    spec.files_dir = folders_.Files(spec.attempt);
    builder_->Build(std::move(spec));
  }
  BuiltEnvironment Await(uint32_t trial) {
    std::unique_lock lock(mutex_);
    const bool came =
        changed_.wait_for(lock, gang::kDeadline, [&] { return done_.contains(trial); });
    return came ? done_.at(trial) : BuiltEnvironment{.error = "nothing came"};
  }
  // Fetches an image that must be found.
  gang::ContainerImage FetchNow(uint32_t trial, const std::string& image = "train:1") {
    Fetch(trial, image);
    const BuiltEnvironment built = Await(trial);
    EXPECT_EQ(built.error, "");
    return built.image.value_or(gang::ContainerImage{});
  }
  // Waits until a held pull runs.
  UniqueFd AwaitPull() {
    EXPECT_TRUE(gang::AwaitCondition([&] { return fs::exists(dir_.path() / "pid"); }));
    return OpenPidfd(std::stoi(ReadFile(dir_.path() / "pid")));
  }

  std::vector<std::string> Calls() const {
    const std::string text = ReadFile(dir_.path() / "calls");
    const auto lines = SplitLines(text);
    return {lines.begin(), lines.end()};
  }
  std::string Log(uint32_t trial) {
    return ReadFile(gang::RankLog(folders_.Attempt(Attempt(trial)), 2));
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

TEST_F(ContainerImagesTest, AnImageOnTheHostIsNotPulled) {
  Install("podman");
  Set("image");
  const gang::ContainerImage image = FetchNow(1);
  EXPECT_EQ(image.id, "sha256:ab12");
  EXPECT_EQ(image.digest, "sha256:cd34");
  EXPECT_EQ(image.engine.program, dir_.path() / "podman");
  EXPECT_THAT(Calls(), ElementsAre(StartsWith("podman image inspect --format ")));
  EXPECT_EQ(Log(1), "");
}

TEST_F(ContainerImagesTest, AMissingImageIsPulledOnceAndTheLogShowsIt) {
  Install("docker");
  EXPECT_EQ(FetchNow(1).id, "sha256:ab12");
  EXPECT_EQ(FetchNow(2).id, "sha256:ab12");
  EXPECT_THAT(Calls(), ElementsAre(HasSubstr("image inspect"), "docker pull train:1",
                                   HasSubstr("image inspect"), HasSubstr("image inspect")));
  EXPECT_EQ(Log(1), "[attune] pulling the image train:1 with docker\nlayer 1 of 2\n");
}

TEST_F(ContainerImagesTest, AFailedPullIsNotTheHostsFault) {
  Install("docker");
  Set("fail");
  Fetch(1);
  const BuiltEnvironment built = Await(1);
  EXPECT_THAT(built.error, HasSubstr("manifest unknown"));
  EXPECT_FALSE(built.is_host_fault);
}

TEST_F(ContainerImagesTest, AnEngineThatDoesNotWorkIsTheHostsFault) {
  Install("docker");
  Set("down");
  Fetch(1);
  const BuiltEnvironment built = Await(1);
  EXPECT_THAT(built.error, HasSubstr("no daemon"));
  EXPECT_TRUE(built.is_host_fault);
  EXPECT_EQ(Calls().back(), "docker info");
}

TEST_F(ContainerImagesTest, AHostWithoutEnginesSaysWhatItSearched) {
  Fetch(1);
  const BuiltEnvironment built = Await(1);
  EXPECT_TRUE(built.is_host_fault);
  EXPECT_THAT(built.error, HasSubstr("podman, docker, apptainer"));
}

TEST_F(ContainerImagesTest, ANameThatLooksLikeAnOptionStartsNoCommand) {
  Install("docker");
  Fetch(1, "--privileged");
  EXPECT_FALSE(Await(1).is_host_fault);
  EXPECT_THAT(Calls(), IsEmpty());
}

TEST_F(ContainerImagesTest, ApptainerPullsIntoAFileThatLaterTrialsUse) {
  Install("apptainer");
  const std::string file = FetchNow(1).id;
  EXPECT_EQ(ReadFile(file), "data\n");
  Start();
  EXPECT_EQ(FetchNow(2).id, file);
  EXPECT_THAT(Calls(), ElementsAre("apptainer pull --force " + file + " docker://train:1"));
}

TEST_F(ContainerImagesTest, ApptainerUsesAFileOfTheHost) {
  Install("apptainer");
  const std::string file = dir_.path() / "train.sif";
  Fetch(1, file);
  EXPECT_FALSE(Await(1).error.empty());
  Set("train.sif");
  EXPECT_EQ(FetchNow(2, file).id, file);
  EXPECT_THAT(Calls(), IsEmpty());
}

TEST_F(ContainerImagesTest, ARelativePathOfAFileIsRefused) {
  Install("apptainer");
  Fetch(1, "train.sif");
  EXPECT_THAT(Await(1).error, HasSubstr("absolute"));
  EXPECT_THAT(Calls(), IsEmpty());
}

TEST_F(ContainerImagesTest, APullThatNobodyWaitsForEnds) {
  Install("docker");
  Set("hold");
  Fetch(1);
  Fetch(2);
  const UniqueFd pull = AwaitPull();
  builder_->Release(Attempt(1));
  fs::remove(dir_.path() / "hold");
  Fetch(3, "other:1");
  builder_->Release(Attempt(2));
  EXPECT_TRUE(gang::WaitForEnd(pull.get()));
  EXPECT_EQ(Await(3).error, "") << "the next image waits for a pull that has ended";
  EXPECT_THAT(done_, SizeIs(1));
}

}  // namespace
}  // namespace attune::agent
