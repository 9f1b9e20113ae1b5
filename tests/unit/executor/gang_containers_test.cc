// Gangs whose engine is a script: `run` runs the program itself, and `rm` is recorded.

#include <signal.h>
#include <stdlib.h>

#include "base/lines.h"
#include "tests/unit/executor/harness.h"

namespace attune::gang {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

constexpr std::string_view kEngine = R"sh(#!/bin/sh
echo "$@" >> "$0.calls"
if [ "$1" = rm ]; then
  if [ -e "$0.broken" ]; then exit 1; fi
  exit 0
fi
if [ -e "$0.failing" ]; then echo "cannot set up GPUs"; exit 125; fi
for word; do
  case "$word" in
    --entrypoint=*) program="${word#*=}" ;;
    --env=ATTUNE_*) export "${word#*=}" ;;
  esac
done
while [ "$1" != image ]; do shift; done
shift
exec "$program" "$@"
)sh";

class GangContainersTest : public GangFixture {
 protected:
  void SetUp() override {
    WriteFile(engine(), std::string(kEngine), true);
    StartSupervisor({.containers_dir = list()});
  }

  fs::path engine() const { return dir_.path() / "docker"; }
  fs::path list() const { return dir_.path() / "containers"; }
  void Set(const std::string& name) { WriteFile(engine().string() + "." + name, ""); }

  GangSpec InContainer(GangSpec spec) const {
    spec.container =
        Container{.image = "train:1",
                  .engine = "docker",
                  .found = ContainerImage{.engine = {ContainerEngine::Kind::kDocker, engine()},
                                          .id = "image"}};
    return spec;
  }

  std::vector<std::string> Calls(std::string_view verb) const {
    const std::string text = ReadFile(engine().string() + ".calls");
    std::vector<std::string> calls;
    for (const std::string_view line : SplitLines(text))
      if (line.starts_with(verb)) calls.emplace_back(line);
    return calls;
  }
};

TEST_F(GangContainersTest, EachContainerIsRemovedBeforeTheEnd) {
  Run(InContainer(Script("exit 0", 2)));
  EXPECT_THAT(Calls("rm "), ElementsAre(StartsWith("rm --force --volumes attune-s1-0-1-r"),
                                        StartsWith("rm --force --volumes attune-s1-0-1-r")));
  EXPECT_TRUE(fs::is_empty(list()));
}

TEST_F(GangContainersTest, ACancelledGangRemovesItsContainer) {
  const GangSpec spec = InContainer(Script("exec sleep 1000"));
  supervisor_->Run(spec);
  Pids(spec);
  supervisor_->Cancel(spec.attempt, CancelReason::kUnwanted);
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kCancelled);
  EXPECT_THAT(Calls("rm "), SizeIs(1));
}

TEST_F(GangContainersTest, AnEngineThatCannotStartAContainerIsToBlame) {
  Set("failing");
  const GangSpec spec = InContainer(Script("exit 0"));
  const Failure failure = RunToFailure(spec);
  EXPECT_EQ(failure.kind, FailureKind::kEnvironment);
  EXPECT_EQ(failure.rank, 0);
  EXPECT_THAT(failure.log_tail, HasSubstr("cannot set up GPUs"));
}

TEST_F(GangContainersTest, AProgramThatFailsIsToBlame) {
  const Failure failure = RunToFailure(InContainer(Script("exit 3")));
  EXPECT_EQ(failure.kind, FailureKind::kExit);
  EXPECT_EQ(failure.exit_code, 3);
}

TEST_F(GangContainersTest, AContainerThatCannotBeRemovedStaysOnTheList) {
  Set("broken");
  EXPECT_EQ(Run(InContainer(Script("exit 0"))).outcome, Outcome::kFinished);
  EXPECT_FALSE(fs::is_empty(list()));
  fs::remove(engine().string() + ".broken");
  StartSupervisor({.containers_dir = list()});
  EXPECT_TRUE(fs::is_empty(list()));
  EXPECT_THAT(Calls("rm "), SizeIs(2));
}

TEST_F(GangContainersTest, AMissingWorkingDirectoryIsAnError) {
  GangSpec spec = InContainer(Script("exit 0"));
  spec.program.working_directory = dir_.path() / "missing";
  EXPECT_EQ(RunToFailure(spec).kind, FailureKind::kStart);
}

}  // namespace
}  // namespace attune::gang
