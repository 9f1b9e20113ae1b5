#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sweepfile/codec.h"
#include "tests/unit/sweepfile/harness.h"

// The keys `environment` and `data`, and `patches` of a parameter.
namespace attune::sweepfile {
namespace {

using ::testing::ElementsAre;

const std::string kSha256(64, 'a');

std::string File(const std::string& more, const std::string& parameter = "value: 1") {
  return "command: [python3, train.py]\n" + more +
         "\nmetric: {name: loss, mode: min}\nparameters: {lr: {" + parameter + "}}\n";
}

std::string Data(const std::string& name, const std::string& url = "https://host/file",
                 const std::string& sha256 = kSha256) {
  return "{name: " + name + ", url: '" + url + "', sha256: '" + sha256 + "'}";
}

// The paths of the faults, in order.
std::vector<std::string> FaultPaths(const std::string& text) {
  std::vector<std::string> paths;
  for (const Fault& fault : ParseSweep(text, Options()).faults) paths.push_back(fault.path);
  return paths;
}

TEST(EnvironmentKey, PathsStartAtTheCodeOrTheFile) {
  Program program = Spec(File("code: .\nenvironment: ./requirements.lock")).program;
  ASSERT_TRUE(program.packages);
  EXPECT_EQ(program.packages->python, "requirements.lock");
  EXPECT_EQ(program.packages->wheels, "");
  program = Spec(File("code: .\nenvironment: {python: a/uv.lock, wheels: /srv/wheels/}")).program;
  EXPECT_EQ(program.packages->python, "a/uv.lock");
  EXPECT_EQ(program.packages->wheels, "/srv/wheels");
  ParseOptions options = Options();
  options.directory = "/home/me";
  program = ParseSweep(File("environment: {python: a.txt}"), options).spec->program;
  EXPECT_EQ(program.packages->python, "/home/me/a.txt");
}

TEST(EnvironmentKey, AContainerHasAnEngine) {
  Program program = Spec(File("environment: {container: 'a/b:c'}")).program;
  EXPECT_EQ(program.packages->container, "a/b:c");
  EXPECT_EQ(program.packages->engine, ContainerEngine::kAny);
  program = Spec(File("environment: {container: x, engine: apptainer}")).program;
  EXPECT_EQ(program.packages->engine, ContainerEngine::kApptainer);
  EXPECT_THAT(FaultPaths(File("code: .\nenvironment: {container: x, python: y}")),
              ElementsAre("environment"));
  EXPECT_THAT(FaultPaths(File("environment: {container: x, engine: lxc}")),
              ElementsAre("environment.engine"));
}

TEST(EnvironmentKey, BadPathsAreRefused) {
  EXPECT_THAT(FaultPaths(File("code: .\nenvironment: ../requirements.txt")),
              ElementsAre("environment"));
  EXPECT_THAT(FaultPaths(File("code: .\nenvironment: {python: a, wheels: ../w}")),
              ElementsAre("environment.wheels"));
  EXPECT_THAT(FaultPaths(File("code: .\nenvironment: {wheels: w}")),
              ElementsAre("environment", "environment.wheels"));
}

TEST(DataKey, HashesAreInLowerCase) {
  const Program program =
      Spec(File("data: [" + Data("cifar-10", "file:///srv/cifar", std::string(64, 'A')) + "]"))
          .program;
  ASSERT_EQ(program.data.size(), 1u);
  EXPECT_EQ(program.data[0].sha256, kSha256);
  EXPECT_EQ(DataVariable(program.data[0].name), "ATTUNE_DATA_CIFAR_10");
}

TEST(DataKey, BadFilesAreRefused) {
  EXPECT_THAT(FaultPaths(File("data: [" + Data("a b") + "]")), ElementsAre("data[0].name"));
  EXPECT_THAT(FaultPaths(File("data: [" + Data("a", "ftp://host/x") + "]")),
              ElementsAre("data[0].url"));
  EXPECT_THAT(FaultPaths(File("data: [" + Data("a", "https://me:word@host/x") + "]")),
              ElementsAre("data[0].url"));
  EXPECT_THAT(FaultPaths(File("data: [" + Data("a", "https://host/x y") + "]")),
              ElementsAre("data[0].url"));
  EXPECT_THAT(FaultPaths(File("data: [" + Data("a", "https://host/x", "12") + "]")),
              ElementsAre("data[0].sha256"));
  EXPECT_THAT(FaultPaths(File("data: [{name: a, url: 'https://host/x'}]")),
              ElementsAre("data[0].sha256"));
  EXPECT_THAT(FaultPaths(File("data: [" + Data("''") + "]")), ElementsAre("data[0].name"));
  EXPECT_THAT(FaultPaths(File("data: [" + Data("a-b") + ", " + Data("A.B") + "]")),
              ElementsAre("data[1].name"))
      << "they have the same variable";
}

TEST(PatchesKey, ThePatchesAreChoices) {
  const SweepSpec spec = Spec(File("code: .", "patches: [none, ./a.diff, b/../c.diff]"));
  const Parameter& parameter = spec.space.parameters()[0];
  EXPECT_TRUE(parameter.patches);
  EXPECT_THAT(std::get<CategoricalDomain>(parameter.domain).values,
              ElementsAre(Value("none"), Value("a.diff"), Value("c.diff")));
}

TEST(PatchesKey, BadPatchesAreRefused) {
  EXPECT_THAT(FaultPaths(File("", "patches: [a.diff]")), ElementsAre("parameters.lr.patches"))
      << "there is no code";
  EXPECT_THAT(FaultPaths(File("code: .", "patches: [../a.diff]")),
              ElementsAre("parameters.lr.patches[0]"));
  EXPECT_THAT(FaultPaths(File("code: .", "patches: [a.diff, ./a.diff]")),
              ElementsAre("parameters.lr.patches"));
  EXPECT_THAT(FaultPaths(File("code: .", "patches: []")), ElementsAre("parameters.lr.patches"));
  EXPECT_THAT(FaultPaths(File("code: .", "patches: [a.diff], value: 1")),
              ElementsAre("parameters.lr"));
  EXPECT_THAT(FaultPaths("metric: {name: loss, mode: min}\n"
                         "parameters: {lr: {patches: [a.diff]}}\n"),
              ElementsAre("parameters.lr.patches"))
      << "there is no program";
}

TEST(FilesKeys, TheResolvedFileReadsBackEqual) {
  const std::string digest = "sha256:" + kSha256;
  const SweepSpec spec =
      Spec(File("code: {digest: '" + digest + "', patched: [{patches: [a.diff], digest: '" +
                    digest + "'}]}\nenvironment: {python: a, wheels: w}\ndata: [" + Data("a") + "]",
                "patches: [none, a.diff]"));
  EXPECT_EQ(Spec(ResolvedYaml(spec)), spec);
  const auto read = SpecFromJson(ToJson(spec));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, spec);
}

}  // namespace
}  // namespace attune::sweepfile
