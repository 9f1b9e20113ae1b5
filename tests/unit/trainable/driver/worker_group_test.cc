// Groups of workers and their drivers, as real processes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <regex>
#include <string>

#include "tests/support/golden.h"
#include "tests/support/scratch_folder.h"
#include "tests/unit/trainable/process.h"

namespace attune::inline sdk::trainable::testing {
namespace {

using attune::testing::ExpectGolden;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Returns the output of the driver program in a mode. It returns only after every worker has ended,
// because each holds the pipe.
std::string OutputOf(const std::string& mode, const Environment& environment = {}) {
  const Ended ended = RunByHand({mode}, environment);
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  return ended.output;
}

TEST(WorkerGroup, CallsAllOrOneWorkerInOrder) {
  EXPECT_EQ(OutputOf("calls"),
            "book 0\nbook 1\nbook 2\n"
            "in order: 1\n"
            "other worker: 0\n"
            "hello book 0 7\nhello book 1 7\nhello book 2 7\n");
}

TEST(WorkerGroup, WorkersWorkInParallel) { EXPECT_EQ(OutputOf("parallel"), "0\n1\n"); }

TEST(WorkerGroup, AWorkerKnowsItsIndexAndIsAGangOfOne) {
  EXPECT_EQ(OutputOf("workers"),
            "0 of 2, rank 0 of 1 on cpu, width 8, hook 1, args workers\n"
            "1 of 2, rank 0 of 1 on cpu, width 8, hook 1, args workers\n"
            "seeds differ: 1, repeatable: 1\n");
}

TEST(WorkerGroup, AnExceptionIsInItsFutureAndTheWorkerContinues) {
  ExpectGolden("trainable/worker_group_throws", OutputOf("throws"));
}

TEST(WorkerGroup, NamesAWorkerWhoseConstructorThrows) {
  EXPECT_EQ(OutputOf("constructor"), "worker 1, worker 1: no dataset /data/none\n");
}

TEST(WorkerGroup, AKilledWorkerIsNamedAndEndsAllCalls) {
  ExpectGolden("trainable/worker_group_killed", OutputOf("killed"));
}

TEST(WorkerGroup, NamesAWorkerThatExitsDuringACall) {
  ExpectGolden("trainable/worker_group_exits", OutputOf("exits"));
}

TEST(WorkerGroup, NamesAStoppedWorkerWithinTheTimeout) {
  const std::string output = OutputOf("stopped");
  EXPECT_THAT(output, StartsWith("lost 1: worker 1 was silent "));
  EXPECT_THAT(output, AllOf(HasSubstr(" stopped\nlost 1: "), HasSubstr("\nlater: lost 1: "),
                            HasSubstr("\nno error\n")));
}

TEST(WorkerGroup, NoWorkerOutlivesAKilledDriver) {
  auto killed_at = std::chrono::steady_clock::time_point();
  const Ended ended = RunByHand({"hangs"}, {}, [&](pid_t pid, const std::string& line) {
    if (line != "hanging") return;
    killed_at = std::chrono::steady_clock::now();
    kill(pid, SIGKILL);
  });
  EXPECT_EQ(ended.exit_code, 128 + SIGKILL);
  EXPECT_THAT(ended.output, StartsWith("hanging\n"));
  EXPECT_LT(std::chrono::steady_clock::now() - killed_at, std::chrono::seconds(5))
      << "all hold the pipe";
}

TEST(WorkerGroup, OneOfTwoGroupsCanBeShutDownByForce) {
  ExpectGolden("trainable/worker_group_shutdown", OutputOf("two_groups"));
}

TEST(WorkerGroup, WorksTogetherWithATrainer) {
  EXPECT_THAT(OutputOf("with_a_trainer"), HasSubstr("epoch: 1\nsums: 8\n"));
}

TEST(WorkerGroup, MisuseIsAnErrorThatNamesItsCause) {
  const std::string output = OutputOf("misuse");
  EXPECT_THAT(output, AllOf(StartsWith("WorkerGroup: num_workers: 0 "),
                            HasSubstr("\nWorkerGroup: cpus_per_worker: 0 "),
                            HasSubstr("\nWorkerGroup: seed: 9007199254740992 "),
                            HasSubstr("\nWorkerGroup: num_workers: 1000 "),
                            HasSubstr("\nbefore the shutdown: notes 0, size 1\n"),
                            HasSubstr("\nattune::Init: ")));
  const std::regex gpus("there are \\d+\n");
  ExpectGolden("trainable/worker_group_misuse", std::regex_replace(output, gpus, "there are N\n"));
}

TEST(WorkerGroup, ValuesSurviveARoundTrip) {
  const std::string output = OutputOf("round_trips");
  for (const char* what : {"integers",
                           "reals",
                           "enumerations",
                           "texts",
                           "long texts",
                           "vectors",
                           "vectors of booleans",
                           "nested",
                           "maps",
                           "unordered maps",
                           "optionals",
                           "pairs",
                           "variants",
                           "metrics",
                           "configurations",
                           "tensors",
                           "named tensors",
                           "tensors in containers",
                           "writable",
                           "copied at the call",
                           "still works"}) {
    EXPECT_THAT("\n" + output, HasSubstr("\n" + std::string(what) + ": 1\n"));
  }
  EXPECT_THAT(output, AllOf(HasSubstr("requires a gradient: 0\n"),
                            HasSubstr("sent: tensor 0: safetensors "),
                            HasSubstr("returned: worker 0: tensor 0: safetensors ")));
}

TEST(WorkerGroup, LargeTensorsTravelBothWays) {
  EXPECT_THAT(OutputOf("large"), AllOf(HasSubstr("sent: 1\n"), HasSubstr("returned: 1\n")));
}

TEST(WorkerGroup, AveragesWeightsButNotCounters) {
  const std::string names =
      "0.bias=B 0.weight=B 1.bias=B 1.num_batches_tracked=C "
      "1.running_mean=B 1.running_var=B 1.weight=B\n";
  const auto with = [&](const std::string& floats, const std::string& counter) {
    std::string text = names;
    for (std::size_t at; (at = text.find("=B")) != std::string::npos;) {
      text.replace(at, 2, "=" + floats);
    }
    return text.replace(text.find("=C"), 2, "=" + counter);
  };
  const std::string output = OutputOf("averages");
  EXPECT_THAT(output, StartsWith("worker 0: " + with("1.0", "1.0") +
                                 "worker 1: " + with("2.0", "2.0") + "mean: " + with("1.5", "1.0") +
                                 "set on all: 1\n"
                                 "one set: 1\nall set: 1\nrefused: worker 1: SetWeights: "));
  EXPECT_THAT(output, HasSubstr("\nunchanged: 1\n"));
}

TEST(WorkerGroup, AveragesHoldersAndModulesAndRefusesDifferentShapes) {
  EXPECT_THAT(OutputOf("averages_of_modules"),
              AllOf(StartsWith("same draws: 0\nholders: 1\nmodules: [1, 2]\n"
                               "refused: AverageWeights: worker 1: tensor line.weight "),
                    HasSubstr("[1, 2] of Float"), HasSubstr("[1, 1] of Float")));
}

TEST(WorkerGroup, TheProgramOfTheDocsRuns) {
  const attune::testing::ScratchFolder folder;
  EXPECT_THAT(OutputOf("docs", {{"TMPDIR", folder.path()}}), HasSubstr("\ndone\n"));
}

}  // namespace
}  // namespace attune::inline sdk::trainable::testing
