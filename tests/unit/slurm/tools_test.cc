#include "slurm/tools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/result.h"
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
  Recorded slurm_;
  Tools tools_{slurm_};
};

TEST_F(SlurmTools, AMachineWithoutSlurmIsNamedAsSuch) {
  const auto submitted = tools_.Submit({}, "pilot.sh");
  EXPECT_EQ(submitted.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(submitted.error().message, AllOf(HasSubstr("no `sbatch`"), HasSubstr("login node")));
}

TEST_F(SlurmTools, SubmitGivesTheJobsNumber) {
  slurm_.Says("sbatch", "4711\n");
  EXPECT_EQ(*tools_.Submit({"--nodes=1"}, "/x/pilot.sh"), "4711");
  EXPECT_THAT(slurm_.runs[0], ElementsAre("sbatch", "--parsable", "--nodes=1", "/x/pilot.sh"));
  slurm_.Says("sbatch", "4712;north\n");  // of several clusters
  EXPECT_EQ(*tools_.Submit({}, "pilot.sh"), "4712");
}

TEST_F(SlurmTools, SubmitThatPrintsNoNumberIsAnError) {
  slurm_.Says("sbatch", "Welcome to our site!\n");
  EXPECT_EQ(tools_.Submit({}, "pilot.sh").error().code, ErrorCode::kInternal);
}

TEST_F(SlurmTools, RefusalsKeepSlurmsWords) {
  slurm_.Fails("sbatch",
               "sbatch: error: Batch job submission failed: Invalid account or account/partition "
               "combination specified\n");
  const auto refused = tools_.Submit({}, "pilot.sh");
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("Invalid account or account/partition"));
}

TEST_F(SlurmTools, AControllerThatIsAwayIsNoRefusal) {
  slurm_.Fails("sbatch",
               "sbatch: error: Batch job submission failed: Unable to contact slurm controller "
               "(connect failure)\n");
  EXPECT_EQ(tools_.Submit({}, "pilot.sh").error().code, ErrorCode::kUnavailable);
  slurm_.Fails("squeue",
               "slurm_load_jobs error: Unable to contact slurm controller (connect failure)");
  EXPECT_EQ(tools_.Jobs("attune-").error().code, ErrorCode::kUnavailable);
}

TEST_F(SlurmTools, BusyNodesAreNoFaultOfARequest) {
  slurm_.Fails("sbatch", "allocation failure: Requested nodes are busy\n");
  EXPECT_TRUE(tools_.Check({}).ok());
  slurm_.Fails("sbatch", "allocation failure: Requested node configuration is not available\n");
  EXPECT_FALSE(tools_.Check({}).ok());
  EXPECT_EQ(slurm_.runs[0][1], "--test-only");
}

TEST_F(SlurmTools, JobsAreThoseOfThisFleet) {
  // squeue of 22.05.8.
  slurm_.Says("squeue",
              "3|attune-ab-3|PENDING|2026-11-23T00:18:07|1|0:00|2:00||BeginTime\n"
              "1|attune-ab-1|RUNNING|2026-11-22T23:18:07|1|1:05|0:55|n1|None\n"
              "2|attune-ab-2|CANCELLED|2026-11-22T23:13:10|1|0:03|1:57|n2|None\n"
              "9|attune-cd-1|RUNNING|N/A|1|0:01|UNLIMITED|n2|None\n"
              "8|bash|RUNNING|N/A|1|0:01|INVALID|n3|None\n"
              "CLUSTER: north\n");
  const auto jobs = tools_.Jobs("attune-ab-");
  ASSERT_EQ(jobs->size(), 3u);
  EXPECT_EQ((*jobs)[0].phase(), Phase::kPending);
  EXPECT_EQ((*jobs)[0].reason, "BeginTime");
  EXPECT_EQ((*jobs)[1].id, "1");
  EXPECT_EQ((*jobs)[1].node, "n1");
  EXPECT_EQ((*jobs)[1].ran, seconds(65));
  EXPECT_EQ((*jobs)[1].left, seconds(55));
  EXPECT_EQ((*jobs)[1].reason, "");
  EXPECT_EQ((*jobs)[2].phase(), Phase::kEnded);
}

TEST_F(SlurmTools, AReasonMayHaveTheSeparatorInIt) {
  slurm_.Says("squeue", "3|attune-ab-3|PENDING|N/A|1|0:00|2:00||Licenses|x\n");
  EXPECT_EQ(tools_.Jobs("attune-ab-")->size(), 1u);
}

// Only 22.05.8 was at hand. What follows is as users of other releases have reported it in public,
// in the columns of ours: ReqNodeNotAvail of 2021 (ArjunaCluster/ArjunaUsers, issue 67), "Nodes
// required" of 2024 (rivosinc/prometheus-slurm-exporter, pull request 106).
TEST_F(SlurmTools, ReasonsWithCommasAndSpacesAreKeptWhole) {
  slurm_.Says("squeue",
              "7|attune-ab-1|PENDING|N/A|1|0:00|2:00||ReqNodeNotAvail, "
              "UnavailableNodes:d[001-032],f[001-024]\n"
              "8|attune-ab-2|PENDING|N/A|1|0:00|2:00||Nodes required for job are DOWN, DRAINED or "
              "reserved for jobs in higher priority partitions\n");
  const auto jobs = tools_.Jobs("attune-ab-");
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ((*jobs)[0].reason, "ReqNodeNotAvail, UnavailableNodes:d[001-032],f[001-024]");
  EXPECT_THAT((*jobs)[1].reason, HasSubstr("higher priority partitions"));
  EXPECT_EQ((*jobs)[0].node, "");
}

// As reported of releases of 2018 (marbl/canu, issue 1218), 2021 (szcf-weiya/techNotes, issue 7)
// and 2025 (rwth-i6/sisyphus, issue 241): newer ones name the limit in a line of its own.
TEST_F(SlurmTools, ALimitOfJobsPassesAndIsNamedWhereSlurmNamesIt) {
  const std::string policy =
      "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit "
      "limit, user's size and/or time limits)\n";
  for (const std::string limit : {"", "sbatch: error: QOSMaxSubmitJobPerUserLimit\n",
                                  "sbatch: error: AssocMaxSubmitJobLimit\n"}) {
    slurm_.Fails("sbatch", limit + policy);
    const auto refused = tools_.Submit({}, "pilot.sh");
    EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable) << limit;
    EXPECT_THAT(refused.error().message, HasSubstr(Trimmed(limit)));
  }
}

TEST_F(SlurmTools, APartitionIsWhatItsNodesHaveInCommon) {
  slurm_.Says("sinfo",
              "cpu|up|infinite|40|64|256000|(null)\n"
              "gpu|up|2-00:00:00|3|96|512000|gpu:a100:4(S:0-1)\n"
              "gpu|up|2-00:00:00|1|64|256000|gpu:a100:4(S:0-1),shard:16\n"
              "gpu|up|2-00:00:00|2|16|128000|(null)\n");
  const auto gpu = tools_.Find("gpu");
  EXPECT_EQ(gpu->nodes, 6);
  EXPECT_EQ(gpu->gpus, 4);
  EXPECT_EQ(gpu->cpus, 64);
  EXPECT_EQ(gpu->memory_bytes, int64_t{256000} << 20);
  EXPECT_EQ(gpu->time_limit, hours(48));
  EXPECT_FALSE(tools_.Find("cpu")->time_limit);
  const auto none = tools_.Find("gpus");
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message, HasSubstr("cpu, gpu"));
}

TEST(SlurmText, TimesAreThoseOfSlurm) {
  EXPECT_EQ(ParseTimeLimit("90"), minutes(90));
  EXPECT_EQ(ParseTimeLimit("90:30"), minutes(90) + seconds(30));
  EXPECT_EQ(ParseTimeLimit("4:00:00"), hours(4));
  EXPECT_EQ(ParseTimeLimit("1-12"), hours(36));
  EXPECT_EQ(ParseTimeLimit("1-12:30"), hours(36) + minutes(30));
  EXPECT_EQ(ParseTimeLimit("1-12:30:05"), hours(36) + minutes(30) + seconds(5));
  for (const char* wrong : {"", "4h", "-1", "1:2:3:4", "infinite", "1-", "::"})
    EXPECT_FALSE(ParseTimeLimit(wrong)) << wrong;
}

TEST(SlurmText, GpusAreCountedOverTypes) {
  EXPECT_EQ(GpusOf(""), 0);
  EXPECT_EQ(GpusOf("(null)"), 0);
  EXPECT_EQ(GpusOf("gpu"), 1);
  EXPECT_EQ(GpusOf("gpu:8"), 8);
  EXPECT_EQ(GpusOf("gpu:a100"), 1);
  EXPECT_EQ(GpusOf("gpu:a100:4(S:0,1),gpu:v100:2,mps:400"), 6);
}

// The states that the manual page of squeue has listed from 20.11 on.
TEST(SlurmText, EveryStateOfTheManualHasItsPhase) {
  for (const char* waits : {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD",
                            "RESV_DEL_HOLD", "SPECIAL_EXIT"})
    EXPECT_EQ(PhaseOf(waits), Phase::kPending) << waits;
  for (const char* runs : {"RUNNING", "RESIZING", "STOPPED", "SUSPENDED"})
    EXPECT_EQ(PhaseOf(runs), Phase::kRunning) << runs;
  for (const char* ends : {"COMPLETING", "SIGNALING", "STAGE_OUT"})
    EXPECT_EQ(PhaseOf(ends), Phase::kEnding) << ends;
  for (const char* ended : {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED",
                            "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"})
    EXPECT_EQ(PhaseOf(ended), Phase::kEnded) << ended;
}

TEST(SlurmText, AStateThatIsNotKnownCountsAsRunning) {
  EXPECT_EQ(PhaseOf("CONFIGURING"), Phase::kPending);
  EXPECT_EQ(PhaseOf("COMPLETING"), Phase::kEnding);
  EXPECT_EQ(PhaseOf("NODE_FAIL"), Phase::kEnded);
  EXPECT_EQ(PhaseOf("SUSPENDED"), Phase::kRunning);
  EXPECT_EQ(PhaseOf("LEVITATING"), Phase::kRunning);
}

TEST(SystemCommands, GiveWhatAProgramPrintedAndHowItEnded) {
  SystemCommands system;
  const auto ran = system.Run({"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(ran->exit_code, 3);
  EXPECT_EQ(ran->out, "out\n");
  EXPECT_EQ(ran->err, "err\n");
  EXPECT_EQ(system.Run({"sh", "-c", "kill -9 $$"})->exit_code, 137);
  EXPECT_EQ(system.Run({"no-such-program-here"}).error().code, ErrorCode::kNotFound);
}

TEST(SystemCommands, WhatRunsIsToldToEnd) {
  SystemCommands system(std::chrono::hours(1));
  std::thread ending([&] { system.End(); });
  const auto ran = system.Run({"sleep", "1000"});
  ending.join();
  EXPECT_TRUE(!ran.ok() || ran->exit_code == 143) << "before it has begun, or after";
  EXPECT_EQ(system.Run({"true"}).error().code, ErrorCode::kUnavailable);
}

TEST(SystemCommands, AProgramThatHangsIsEnded) {
  SystemCommands system(std::chrono::milliseconds(50));
  EXPECT_EQ(system.Run({"sleep", "1000"}).error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace attune::slurm
