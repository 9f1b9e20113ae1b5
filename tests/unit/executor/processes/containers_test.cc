#include "executor/processes/containers.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "executor/processes/container_list.h"
#include "tests/unit/executor/harness.h"

namespace attune::gang {
namespace {

namespace fs = std::filesystem;

using testing::Contains;
using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::Not;
using testing::Pair;
using Kind = ContainerEngine::Kind;

ContainerRun RunWith(Kind kind) {
  return {
      .image = {.engine = {kind, "/engines/" + std::string(Name(kind))}, .id = "ab12"},
      .name = "attune-s1-0-1-r0-00",
      .label = "s1/0.1",
      .argv = {"python3", "-c", "print(1)"},
      .folder = "/trial/work",
      .mounts = {{"/trial/work"}, {"/copy", true}},
      .environment = {{"KEY", "first"}, {"KEY", "hidden"}, {"ATTUNE_RANK", "0"}, {"HOME", "/h"}}};
}

// The arguments without those that depend on this host and on its user.
std::vector<std::string> ArgumentsOf(const ContainerRun& run) {
  std::vector<std::string> arguments = RunCommand(run).arguments;
  std::erase_if(arguments, [](const std::string& argument) {
    return argument.starts_with("--init") || argument.starts_with("--user");
  });
  return arguments;
}

class ContainersTest : public testing::Test {
 protected:
  ContainersTest() {
    setenv("PATH", dir_.path().c_str(), 1);
    for (const char* inherited :
         {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME",
          "OMP_NUM_THREADS", "PET_MASTER_PORT", "PET_STANDALONE", "PYTHONUNBUFFERED"})
      unsetenv(inherited);
  }
  ~ContainersTest() override { setenv("PATH", path_.c_str(), 1); }

  void Install(const std::string& engine, const std::string& text = "") {
    WriteFile(dir_.path() / engine, "#!/bin/sh\n" + text, true);
  }

  TempDir dir_;
  const std::string path_ = getenv("PATH");
};

TEST_F(ContainersTest, PodmanRunsTheProgramWithoutTheEntryPointOfTheImage) {
  EXPECT_THAT(
      ArgumentsOf(RunWith(Kind::kPodman)),
      ElementsAre("run", "--name=attune-s1-0-1-r0-00", "--label=attune=s1/0.1", "--network=host",
                  "--ipc=host", "--log-driver=none", "--security-opt=label=disable",
                  "--stop-timeout=0", "--mount", "type=bind,source=/trial/work,target=/trial/work",
                  "--mount", "type=bind,source=/copy,target=/copy,ro", "--workdir=/trial/work",
                  "--env=ATTUNE_RANK=0", "--env=HOME=/h", "--env=KEY", "--entrypoint=python3",
                  "ab12", "-c", "print(1)"));
}

TEST_F(ContainersTest, DockerRunsTheProgramAsThisUserWithAnInit) {
  const std::string user = "--user=" + std::to_string(geteuid()) + ":" + std::to_string(getegid());
  EXPECT_THAT(RunCommand(RunWith(Kind::kDocker)).arguments, IsSupersetOf({"--init", user.c_str()}));
}

TEST_F(ContainersTest, ApptainerGetsVariablesOfTheProgramAlone) {
  const EngineCommand command = RunCommand(RunWith(Kind::kApptainer));
  EXPECT_THAT(command.arguments,
              ElementsAre("exec", "--cleanenv", "--no-home", "--mount",
                          "type=bind,source=/trial/work,target=/trial/work", "--mount",
                          "type=bind,source=/copy,target=/copy,ro", "--pwd", "/trial/work", "ab12",
                          "python3", "-c", "print(1)"));
  EXPECT_THAT(command.environment,
              testing::UnorderedElementsAre(
                  Pair("APPTAINERENV_KEY", "hidden"), Pair("APPTAINERENV_HOME", "/h"),
                  Pair("APPTAINERENV_ATTUNE_RANK", "0"), Pair("ATTUNE_RANK", "0")));
}

TEST_F(ContainersTest, ValuesThatMayBeSecretAreNotInArguments) {
  for (const Kind kind : {Kind::kPodman, Kind::kDocker, Kind::kApptainer}) {
    for (const std::string& argument : RunCommand(RunWith(kind)).arguments)
      EXPECT_EQ(argument.find("hidden"), argument.npos) << argument;
  }
  EXPECT_THAT(RunCommand(RunWith(Kind::kDocker)).environment, ElementsAre(Pair("KEY", "hidden")));
}

// With another HOME, Podman would not find its images.
TEST_F(ContainersTest, VariablesOfTheEngineStayThoseOfTheHost) {
  EXPECT_THAT(RunCommand(RunWith(Kind::kPodman)).environment, Not(Contains(Pair("HOME", "/h"))));
}

TEST_F(ContainersTest, VariablesThatRanksInheritReachTheContainer) {
  setenv("OMP_NUM_THREADS", "3", 1);
  EXPECT_THAT(RunCommand(RunWith(Kind::kDocker)).environment,
              Contains(Pair("OMP_NUM_THREADS", "3")));
  unsetenv("OMP_NUM_THREADS");
}

TEST_F(ContainersTest, EachEngineHasItsOptionForGpus) {
  for (const auto& [kind, option] : {std::pair(Kind::kPodman, "--device=nvidia.com/gpu=all"),
                                     {Kind::kDocker, "--gpus=all"},
                                     {Kind::kApptainer, "--nv"}}) {
    ContainerRun run = RunWith(kind);
    EXPECT_THAT(RunCommand(run).arguments, Not(Contains(option)));
    run.uses_gpus = true;
    EXPECT_THAT(RunCommand(run).arguments, Contains(option));
  }
}

TEST_F(ContainersTest, PathsWithCommasAreQuoted) {
  ContainerRun run = RunWith(Kind::kDocker);
  run.mounts = {{"/a,ro\"b"}};
  EXPECT_THAT(RunCommand(run).arguments,
              Contains("type=bind,\"source=/a,ro\"\"b\",\"target=/a,ro\"\"b\""));
}

TEST_F(ContainersTest, NamesThatAnEngineCouldMisreadAreRefused) {
  for (const char* image : {"", "-v=/:/host", "--privileged", "a b", "a\tb", "a\nb", "a\x7f"})
    EXPECT_FALSE(CheckImageName(image).ok()) << image;
  EXPECT_FALSE(CheckImageName(std::string(513, 'a')).ok());
  for (const char* image : {"python", "docker.io/library/python:3.12", "/images/train.sif",
                            "host:5000/a/b@sha256:00ff", "oras://registry/a:1"})
    EXPECT_TRUE(CheckImageName(image).ok()) << image;
  EXPECT_TRUE(CheckImageName(std::string(512, 'a')).ok());
}

TEST_F(ContainersTest, TheFirstEngineOfTheHostIsFound) {
  EXPECT_EQ(FindContainerEngine("any").error().code, ErrorCode::kUnavailable);
  Install("apptainer");
  EXPECT_EQ(FindContainerEngine("any").value().kind, Kind::kApptainer);
  EXPECT_EQ(FindContainerEngine("docker").error().code, ErrorCode::kUnavailable);
  Install("podman");
  Install("docker");
  EXPECT_EQ(FindContainerEngine("any").value().program, dir_.path() / "podman");
  EXPECT_EQ(FindContainerEngine("docker").value().kind, Kind::kDocker);
  EXPECT_EQ(FindContainerEngine("lxc").error().code, ErrorCode::kInvalid);
}

TEST_F(ContainersTest, AnInspectionTellsTheIdAndTheDigest) {
  const ContainerEngine engine{Kind::kDocker, "/engines/docker"};
  const auto image = ReadInspection(engine, "sha256:ab12 python@sha256:cd other@sha256:ef ");
  EXPECT_EQ(image.value().id, "sha256:ab12");
  EXPECT_EQ(image.value().digest, "sha256:cd");
  EXPECT_EQ(ReadInspection(engine, "ab12 ").value().digest, "");  // built on this host
  for (const char* line : {"", "--privileged", "sha256:", "Error: no such image"})
    EXPECT_FALSE(ReadInspection(engine, line).ok()) << line;
}

TEST_F(ContainersTest, ContainersOfAnEarlierExecutorAreRemovedOnce) {
  const fs::path calls = dir_.path() / "calls";
  Install("podman", "echo \"$@\" >> " + calls.string());
  const ContainerList list(dir_.path() / "list");
  const ContainerEngine engine = FindContainerEngine("podman").value();
  for (const char* name : {"attune-a", "attune-b", "attune-c"})
    ASSERT_TRUE(list.Add(name, engine).ok());
  list.Forget("attune-b");

  ContainerList(dir_.path() / "list").RemoveLeft();
  ContainerList(dir_.path() / "list").RemoveLeft();
  EXPECT_THAT(ReadFile(calls), testing::AnyOf("rm --force --volumes attune-a attune-c\n",
                                              "rm --force --volumes attune-c attune-a\n"));
}

TEST_F(ContainersTest, AnEngineThatIsGoneDoesNotStopTheNextExecutor) {
  const ContainerList list(dir_.path() / "list");
  ASSERT_TRUE(list.Add("attune-a", {Kind::kDocker, dir_.path() / "docker"}).ok());
  list.RemoveLeft();
  EXPECT_TRUE(fs::is_empty(dir_.path() / "list"));
}

}  // namespace
}  // namespace attune::gang
