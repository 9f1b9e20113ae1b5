#include "slurm/tools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/result.h"
#include "pilots/text.h"
#include "slurm/text.h"
#include "tests/unit/slurm/recorded.h"

namespace attune::slurm {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class SlurmTools : public testing::Test {
 protected:
  RecordedCommands slurm_;
  Tools tools_{slurm_};
};

TEST_F(SlurmTools, ReportsAMachineWithoutSlurm) {
  const auto submitted = tools_.Submit({}, "pilot.sh");
  EXPECT_EQ(submitted.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(submitted.error().message,
              AllOf(HasSubstr("`sbatch`"), HasSubstr("module load slurm")));
}

TEST_F(SlurmTools, SubmitReturnsTheJobNumber) {
  slurm_.SetOutput("sbatch", "4711\n");
  EXPECT_EQ(*tools_.Submit({"--nodes=1"}, "/x/pilot.sh"), "4711");
  EXPECT_THAT(slurm_.runs[0], ElementsAre("sbatch", "--parsable", "--nodes=1", "/x/pilot.sh"));
  slurm_.SetOutput("sbatch", "4712;north\n");  // of several clusters
  EXPECT_EQ(*tools_.Submit({}, "pilot.sh"), "4712");
}

TEST_F(SlurmTools, SubmitFailsWithoutAJobNumber) {
  slurm_.SetOutput("sbatch", "Welcome to our site!\n");
  EXPECT_EQ(tools_.Submit({}, "pilot.sh").error().code, ErrorCode::kInternal);
}

TEST_F(SlurmTools, QuotesSlurmInARefusal) {
  slurm_.SetFailure(
      "sbatch",
      "sbatch: error: Batch job submission failed: Invalid account or account/partition "
      "combination specified\n");
  const auto refused = tools_.Submit({}, "pilot.sh");
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("Invalid account"));
}

TEST_F(SlurmTools, AnUnreachableControllerIsUnavailable) {
  slurm_.SetFailure(
      "sbatch",
      "sbatch: error: Batch job submission failed: Unable to contact slurm controller "
      "(connect failure)\n");
  EXPECT_EQ(tools_.Submit({}, "pilot.sh").error().code, ErrorCode::kUnavailable);
  slurm_.SetFailure("squeue",
                    "slurm_load_jobs error: Unable to contact slurm controller (connect failure)");
  EXPECT_EQ(tools_.Jobs("attune-").error().code, ErrorCode::kUnavailable);
}

TEST_F(SlurmTools, AcceptsARequestWhenNodesAreBusy) {
  slurm_.SetFailure("sbatch", "allocation failure: Requested nodes are busy\n");
  EXPECT_TRUE(tools_.Check({}).ok());
  slurm_.SetFailure("sbatch",
                    "allocation failure: Requested node configuration is not available\n");
  EXPECT_FALSE(tools_.Check({}).ok());
  EXPECT_EQ(slurm_.runs[0][1], "--test-only");
}

TEST_F(SlurmTools, ListsOnlyJobsOfTheFleet) {
  // squeue of 22.05.8.
  slurm_.SetOutput("squeue",
                   "3|attune-ab-3|PENDING|2026-11-23T00:18:07|1|0:00|2:00||BeginTime\n"
                   "1|attune-ab-1|RUNNING|2026-11-22T23:18:07|1|1:05|0:55|n1|None\n"
                   "2|attune-ab-2|CANCELLED|2026-11-22T23:13:10|1|0:03|1:57|n2|None\n"
                   "9|attune-cd-1|RUNNING|N/A|1|0:01|UNLIMITED|n2|None\n"
                   "8|bash|RUNNING|N/A|1|0:01|INVALID|n3|None\n"
                   "CLUSTER: north\n");
  const auto jobs = tools_.Jobs("attune-ab-");
  ASSERT_EQ(jobs->size(), 3u);
  EXPECT_EQ((*jobs)[0].phase, pilots::Phase::kPending);
  EXPECT_EQ((*jobs)[0].reason, "BeginTime");
  EXPECT_EQ((*jobs)[1].id, "1");
  EXPECT_EQ((*jobs)[1].node, "n1");
  EXPECT_EQ((*jobs)[1].ran, seconds(65));
  EXPECT_EQ((*jobs)[1].left, seconds(55));
  EXPECT_EQ((*jobs)[1].reason, "");
  EXPECT_EQ((*jobs)[2].phase, pilots::Phase::kEnded);
}

TEST_F(SlurmTools, AcceptsTheSeparatorInAReason) {
  slurm_.SetOutput("squeue", "3|attune-ab-3|PENDING|N/A|1|0:00|2:00||Licenses|x\n");
  EXPECT_EQ(tools_.Jobs("attune-ab-")->size(), 1u);
}

// Only release 22.05.8 was available for tests. These lines of other releases come from public
// reports, with our columns: ReqNodeNotAvail of 2021 (ArjunaCluster/ArjunaUsers, issue 67), "Nodes
// required" of 2024 (rivosinc/prometheus-slurm-exporter, pull request 106).
TEST_F(SlurmTools, KeepsReasonsWithCommasAndSpaces) {
  slurm_.SetOutput(
      "squeue",
      "7|attune-ab-1|PENDING|N/A|1|0:00|2:00||ReqNodeNotAvail, "
      "UnavailableNodes:d[001-032],f[001-024]\n"
      "8|attune-ab-2|PENDING|N/A|1|0:00|2:00||Nodes required for job are DOWN, DRAINED or "
      "reserved for jobs in higher priority partitions\n");
  const auto jobs = tools_.Jobs("attune-ab-");
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ((*jobs)[0].reason, "ReqNodeNotAvail, UnavailableNodes:d[001-032],f[001-024]");
  EXPECT_THAT((*jobs)[1].reason, HasSubstr("priority partitions"));
  EXPECT_EQ((*jobs)[0].node, "");
}

// From public reports about releases of 2018 (marbl/canu, issue 1218), 2021 (szcf-weiya/techNotes,
// issue 7) and 2025 (rwth-i6/sisyphus, issue 241). Newer releases name the limit in a separate
// line.
TEST_F(SlurmTools, TreatsAJobLimitAsTemporaryAndNamesIt) {
  const std::string policy =
      "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit "
      "limit, user's size and/or time limits)\n";
  for (const std::string limit : {"", "sbatch: error: QOSMaxSubmitJobPerUserLimit\n",
                                  "sbatch: error: AssocMaxSubmitJobLimit\n"}) {
    slurm_.SetFailure("sbatch", limit + policy);
    const auto refused = tools_.Submit({}, "pilot.sh");
    EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable) << limit;
    EXPECT_THAT(refused.error().message, HasSubstr(pilots::Trim(limit)));
  }
}

TEST_F(SlurmTools, APartitionHasTheMinimumOfItsNodes) {
  slurm_.SetOutput("sinfo",
                   "cpu|up|infinite|40|64|256000|(null)\n"
                   "gpu|up|2-00:00:00|3|96|512000|gpu:a100:4(S:0-1)\n"
                   "gpu|up|2-00:00:00|1|64|256000|gpu:a100:4(S:0-1),shard:16\n"
                   "gpu|up|2-00:00:00|2|16|128000|(null)\n");
  const auto gpu = tools_.FindPartition("gpu");
  EXPECT_EQ(gpu->nodes, 6);
  EXPECT_EQ(gpu->gpus, 4);
  EXPECT_EQ(gpu->cpus, 64);
  EXPECT_EQ(gpu->memory_bytes, int64_t{256000} << 20);
  EXPECT_EQ(gpu->time_limit, hours(48));
  EXPECT_FALSE(tools_.FindPartition("cpu")->time_limit);
  const auto none = tools_.FindPartition("gpus");
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message, HasSubstr("cpu, gpu"));
}

TEST(SlurmText, ParsesSlurmsTimeFormats) {
  EXPECT_EQ(ParseTimeLimit("90"), minutes(90));
  EXPECT_EQ(ParseTimeLimit("90:30"), minutes(90) + seconds(30));
  EXPECT_EQ(ParseTimeLimit("4:00:00"), hours(4));
  EXPECT_EQ(ParseTimeLimit("1-12"), hours(36));
  EXPECT_EQ(ParseTimeLimit("1-12:30"), hours(36) + minutes(30));
  EXPECT_EQ(ParseTimeLimit("1-12:30:05"), hours(36) + minutes(30) + seconds(5));
  for (const char* wrong : {"", "4h", "-1", "1:2:3:4", "infinite", "1-", "::"})
    EXPECT_FALSE(ParseTimeLimit(wrong)) << wrong;
}

TEST(SlurmText, CountsGpusOfAllTypes) {
  EXPECT_EQ(CountGpus(""), 0);
  EXPECT_EQ(CountGpus("(null)"), 0);
  EXPECT_EQ(CountGpus("gpu"), 1);
  EXPECT_EQ(CountGpus("gpu:8"), 8);
  EXPECT_EQ(CountGpus("gpu:a100"), 1);
  EXPECT_EQ(CountGpus("gpu:a100:4(S:0,1),gpu:v100:2,mps:400"), 6);
}

// The states in the manual page of squeue since release 20.11.
TEST(SlurmText, MapsEveryStateOfTheManualToAPhase) {
  for (const char* waits : {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD",
                            "RESV_DEL_HOLD", "SPECIAL_EXIT"})
    EXPECT_EQ(PhaseOf(waits), pilots::Phase::kPending) << waits;
  for (const char* runs : {"RUNNING", "RESIZING", "STOPPED", "SUSPENDED"})
    EXPECT_EQ(PhaseOf(runs), pilots::Phase::kRunning) << runs;
  for (const char* ends : {"COMPLETING", "SIGNALING", "STAGE_OUT"})
    EXPECT_EQ(PhaseOf(ends), pilots::Phase::kEnding) << ends;
  for (const char* ended : {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED",
                            "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"})
    EXPECT_EQ(PhaseOf(ended), pilots::Phase::kEnded) << ended;
}

TEST(SlurmText, UnknownStatesCountAsRunning) {
  EXPECT_EQ(PhaseOf("CONFIGURING"), pilots::Phase::kPending);
  EXPECT_EQ(PhaseOf("COMPLETING"), pilots::Phase::kEnding);
  EXPECT_EQ(PhaseOf("NODE_FAIL"), pilots::Phase::kEnded);
  EXPECT_EQ(PhaseOf("SUSPENDED"), pilots::Phase::kRunning);
  EXPECT_EQ(PhaseOf("LEVITATING"), pilots::Phase::kRunning);
}

}  // namespace
}  // namespace attune::slurm
