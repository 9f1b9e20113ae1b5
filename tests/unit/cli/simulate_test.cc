#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "cli/json.h"
#include "server/store/sqlite_store.h"
#include "simulator/curves.h"
#include "tests/support/sample_log.h"
#include "tests/unit/cli/command_line.h"
#include "tests/unit/cli/fake_server.h"

namespace attune::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kSweep[] = R"(name: planned
command: [./not-built-yet, "${args}"]
metric: {name: loss, mode: min}
parameters: {lr: {min: 1e-4, max: 1.0, scale: log}}
searcher: {name: random, seed: 7}
scheduler: {name: asha, min: 1, max: 9, reduction_factor: 3}
resources: {workers: 2, gpus_per_worker: 1}
stop: {max_trials: 30}
)";

class SimulateCommand : public ::testing::Test {
 protected:
  Ran Attune(std::vector<std::string> args) {
    args.insert(args.begin(), {"simulate", sweep_});
    return RunAttune(args);
  }
  Json AnswerTo(std::vector<std::string> args) {
    args.push_back("--json");
    const Ran ran = Attune(std::move(args));
    EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
    return Json::parse(ran.out);
  }

  ScratchFolder folder_;
  std::string sweep_ = folder_.Write("sweep.yaml", kSweep);
};

TEST_F(SimulateCommand, NeedsNeitherServerNorProgram) {
  const Ran ran = Attune({"--slots", "16", "--step-seconds", "60"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
  EXPECT_THAT(ran.out, StartsWith("planned  completed\n"));
  EXPECT_THAT(ran.out, ::testing::AllOf(HasSubstr("16 slots"), HasSubstr("power-law"),
                                        HasSubstr("seed 7\n")));
  EXPECT_THAT(ran.out, HasSubstr("GPU-hours     "));
  EXPECT_THAT(ran.out, HasSubstr("\nRUNG  REACHED  STOPPED THERE\n   1       30 "));
}

TEST_F(SimulateCommand, JsonHasFullPrecision) {
  const Json answer = AnswerTo({"--slots", "16", "--step-seconds", "3600"});
  EXPECT_EQ(answer["state"], "completed");
  EXPECT_EQ(answer["trials"]["completed"].get<int>() + answer["trials"]["stopped"].get<int>(), 30);
  EXPECT_EQ(answer["rungs"].size(), 3);
  EXPECT_EQ(answer["steps_in_full"], 270);
  EXPECT_DOUBLE_EQ(answer["gpu_hours"].get<double>(), 2 * answer["steps"].get<double>());
  EXPECT_EQ(answer["gpu_hours"], answer["slot_hours"]);
  EXPECT_TRUE(answer["best"]["metrics"]["loss"].is_number());
}

TEST_F(SimulateCommand, SeedOverridesTheFile) {
  const Json of_file = AnswerTo({});
  EXPECT_EQ(of_file, AnswerTo({"--seed", "7"}));
  EXPECT_NE(of_file["best"], AnswerTo({"--seed", "8"})["best"]);
}

TEST_F(SimulateCommand, TakesRecordedCurvesFromAFile) {
  const std::string curves = folder_.Write("curves.csv",
                                           "trial,attempt,step,seconds,metrics.loss\n"
                                           "0,1,1,5,0.9\n1,1,1,5,0.5\n");
  const Json answer = AnswerTo({"--curves", curves});
  EXPECT_EQ(answer["best"]["trial"], 1);
  EXPECT_EQ(answer["best"]["metrics"]["loss"], 0.5);
  EXPECT_EQ(answer["best"]["seconds"], 5);
}

TEST_F(SimulateCommand, ReadsTheOutputOfDbExport) {
  const std::string data = folder_.path().string();
  const std::string curves = data + "/curves.csv";
  auto store = server::SqliteStore::Open(data + "/attune.db").value();
  ASSERT_TRUE(store->Append(server::SampleLog().events()).ok());
  const Ran exported =
      RunAttune({"db", "export", "--what", "reports", "--data-dir", data, "-o", curves});
  ASSERT_EQ(exported.code, ExitCode::kSuccess) << exported.err;
  const Ran ran = Attune({"--curves", curves});
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("loss 0.3333"));
}

TEST_F(SimulateCommand, NamesFileAndLineOfAFaultInCurves) {
  const std::string curves = folder_.Write("curves.csv", "trial,step,metrics.loss\n0,one,0.9\n");
  const Ran ran = Attune({"--curves", curves});
  EXPECT_EQ(ran.code, ExitCode::kUsage);
  EXPECT_THAT(ran.err, HasSubstr(curves + ":2: step `one`"));
}

TEST_F(SimulateCommand, ListsTheModelsForUnknownCurves) {
  const Ran ran = Attune({"--curves", "straight"});
  EXPECT_EQ(ran.code, ExitCode::kUsage);
  EXPECT_THAT(ran.err, HasSubstr("power-law"));
}

TEST_F(SimulateCommand, NamesTheLineOfAFaultInTheSweepFile) {
  const std::string file = folder_.Write("wrong.yaml", "colour: red\n");
  const Ran ran = RunAttune({"simulate", file});
  EXPECT_EQ(ran.code, ExitCode::kUsage);
  EXPECT_THAT(ran.err, HasSubstr(file + ":1:1: "));
}

TEST_F(SimulateCommand, RefusesAGangLargerThanTheSlots) {
  const Ran ran = Attune({"--slots", "1"});
  EXPECT_EQ(ran.code, ExitCode::kUsage);
  EXPECT_THAT(ran.err, HasSubstr(sweep_ + ": resources.workers: "));
}

class SimulatorPage : public ::testing::Test {
 protected:
  SimulatorPage() {
    std::ifstream stream(root_ + "/docs/design/simulator.md");
    page_.assign(std::istreambuf_iterator<char>(stream), {});
  }

  const std::string root_ = ATTUNE_SOURCE_DIR;
  std::string page_;
};

TEST_F(SimulatorPage, ShowsTheOutputOfTheCommand) {
  const std::string file = "examples/fashion_mnist/sweep-full.yaml";
  const Ran ran =
      RunAttune({"simulate", root_ + "/" + file, "--slots", "64", "--step-seconds", "60"});
  EXPECT_THAT(page_, HasSubstr("\n$ attune simulate " + file + " --slots 64 --step-seconds 60\n" +
                               ran.out + "```\n"));
}

TEST_F(SimulatorPage, DescribesEveryModelOfCurves) {
  for (const std::string& model : simulate::CurveModels()) {
    EXPECT_THAT(page_, HasSubstr("| `" + model + "` |"));
  }
}

}  // namespace
}  // namespace attune::cli
