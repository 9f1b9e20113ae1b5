#include "slurm/pilot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/result.h"

namespace attune::slurm {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(SlurmPilot, RequestsAWholeNodeUnlessCpusAreGiven) {
  const auto whole = SbatchOptions({.partition = "gpu", .gres = "gpu:8", .time = "4:00:00"},
                                   {.logs = "/s/logs"}, "attune-x-1");
  EXPECT_THAT(whole,
              AllOf(Contains("--exclusive"), Contains("--mem=0"), Contains("--gres=gpu:8"),
                    Contains("--time=4:00:00"), Contains("--no-requeue"),
                    Contains("--signal=B:TERM@60"), Contains("--output=/s/logs/attune-x-1.log")));
  const auto part = SbatchOptions(
      {.partition = "cpu", .account = "lab", .cpus = 4, .more = {"--constraint=rome"}}, {},
      "attune-x-1");
  EXPECT_THAT(part, AllOf(Contains("--cpus-per-task=4"), Contains("--account=lab"),
                          Not(Contains("--exclusive")), Not(Contains(HasSubstr("--mem")))));
  EXPECT_EQ(part.back(), "--constraint=rome") << "options of the user come last";
}

TEST(SlurmPilot, RefusesRequestsThatSlurmWouldLetWaitForEver) {
  const Partition partition{
      .name = "short", .time_limit = std::chrono::minutes(10), .nodes = 1, .cpus = 16, .gpus = 2};
  const auto problem = [&](const PilotOptions& options) {
    const Status status = Check(options, partition);
    return status.ok() ? "" : status.error().message;
  };
  EXPECT_THAT(problem({.time = "0:30"}), AllOf(HasSubstr("--time 0:30"), HasSubstr("60 s")));
  EXPECT_THAT(problem({.time = "1"}), AllOf(HasSubstr("--time 1"), HasSubstr("60 s")));
  EXPECT_THAT(problem({.time = "11"}), HasSubstr("PartitionTimeLimit"));
  EXPECT_THAT(problem({.time = "soon"}), HasSubstr("--time soon"));
  EXPECT_THAT(problem({.gres = "gpu:3"}), HasSubstr("--gres gpu:3"));
  EXPECT_THAT(problem({.cpus = 17}), HasSubstr("--cpus 17"));
  EXPECT_THAT(problem({.nodes = 2}), HasSubstr("--nodes-per-pilot 2"));
  EXPECT_EQ(problem({.gres = "gpu:2", .time = "10", .cpus = 16}), "");
  EXPECT_EQ(problem({.qos = "long", .time = "11"}), "") << "a QOS may allow it";
}

TEST(SlurmPilot, ScriptsQuotePathsAndAddresses) {
  const std::string script = PilotScript({.program = "/opt/it's here/attune",
                                          .server = "login:7071",
                                          .token_file = "/s/join",
                                          .data_dir = "/s",
                                          .logs = "/s/my logs"},
                                         "/s/my pilot.sh");
  EXPECT_THAT(script,
              HasSubstr("executor=('/opt/it'\\''s here/attune' executor --server 'login:7071'"));
  EXPECT_THAT(script, HasSubstr("--give-up 600"));
  EXPECT_THAT(script, AllOf(HasSubstr("logs='/s/my logs'"), HasSubstr("script='/s/my pilot.sh'")));
}

TEST(SlurmPilot, ExpectsRequestedResourcesOrThoseOfTheNodes) {
  const Partition partition{
      .name = "main", .nodes = 3, .cpus = 64, .memory_bytes = int64_t{256} << 30, .gpus = 4};
  EXPECT_EQ(NodeResources({}, partition), (pilots::Resources{64, 0, int64_t{256} << 30}));
  EXPECT_EQ(NodeResources({.gres = "gpu:a100:2", .cpus = 8, .memory = "16G"}, partition),
            (pilots::Resources{8, 2, int64_t{16} << 30}));
  EXPECT_EQ(NodeResources({.memory = "4000"}, partition).memory_bytes, int64_t{4000} << 20);
}

}  // namespace
}  // namespace attune::slurm
