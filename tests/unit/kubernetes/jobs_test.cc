#include "kubernetes/jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attune::kubernetes {
namespace {

using pilots::Phase;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const int64_t kNow = ParseTime("2026-11-30T08:00:00Z");

Json JobItem(int nodes = 1) {
  return {{"kind", "Job"},
          {"metadata",
           {{"name", "attune-0a1b2c3d-1"},
            {"labels", {{kPilotLabel, "1"}, {kFleetLabel, "0a1b2c3d"}}}}},
          {"spec", {{"parallelism", nodes}}},
          {"status", {{"startTime", "2026-11-30T07:58:00Z"}}}};
}
Json PodItem(const std::string& phase, const std::string& node = "n1") {
  Json pod = {{"kind", "Pod"},
              {"metadata", {{"labels", {{kPilotLabel, "1"}}}}},
              {"spec", {{"nodeName", node}}},
              {"status", {{"phase", phase}}}};
  if (!node.empty()) pod["status"]["startTime"] = "2026-11-30T07:58:30Z";
  if (phase == "Running")
    pod["status"]["containerStatuses"] = {
        {{"state", {{"running", {{"startedAt", "2026-11-30T07:59:00Z"}}}}}}};
  if (phase == "Failed" || phase == "Succeeded")
    pod["status"]["containerStatuses"] = {{{"state",
                                            {{"terminated",
                                              {{"startedAt", "2026-11-30T07:59:00Z"},
                                               {"finishedAt", "2026-11-30T07:59:30Z"},
                                               {"exitCode", phase == "Failed" ? 2 : 0}}}}}}};
  return pod;
}
Json Condition(const std::string& type, const std::string& reason, const std::string& message) {
  return {{"type", type},
          {"status", "True"},
          {"reason", reason},
          {"message", message},
          {"lastTransitionTime", "2026-11-30T07:59:30Z"}};
}
pilots::Job Read(const Json& job, const std::vector<Json>& pods) {
  Json list = {{"items", {job}}};
  for (const Json& pod : pods) list["items"].push_back(pod);
  return ReadJobs(list, kNow).at(0);
}
TEST(KubernetesJobs, AJobRunsIfAllItsPodsRun) {
  const pilots::Job job = Read(JobItem(2), {PodItem("Running", "n2"), PodItem("Running", "n1")});
  EXPECT_EQ(job.phase, Phase::kRunning);
  EXPECT_EQ(job.state, "Running");
  EXPECT_EQ(job.node, "n1,n2");
  EXPECT_EQ(job.nodes, 2);
  EXPECT_EQ(job.ran, std::chrono::seconds(60));
  EXPECT_FALSE(job.left);
  EXPECT_EQ(Read(JobItem(2), {PodItem("Running")}).phase, Phase::kPending);
}

TEST(KubernetesJobs, TimeBeginsWithTheExecutorAndNotWithTheImage) {
  EXPECT_EQ(Read(JobItem(), {PodItem("Pending")}).ran, std::chrono::seconds(0));
  EXPECT_EQ(Read(JobItem(), {PodItem("Running")}).ran, std::chrono::seconds(60));
}

// The Job controller does not fill the place of a pod that has succeeded, and an executor that was
// asked to leave succeeds.
TEST(KubernetesJobs, AJobThatHasLostAPodRunsAndDoesNotWait) {
  EXPECT_EQ(Read(JobItem(2), {PodItem("Succeeded"), PodItem("Running")}).phase, Phase::kRunning);
  EXPECT_TRUE(Read(JobItem(2), {PodItem("Succeeded"), PodItem("Running")}).lost_node);
  EXPECT_FALSE(Read(JobItem(2), {PodItem("Running"), PodItem("Running")}).lost_node);
  Json job = JobItem(2);
  job["status"]["succeeded"] = 1;
  EXPECT_EQ(Read(job, {PodItem("Running")}).phase, Phase::kRunning) << "the pod is deleted";
}

TEST(KubernetesJobs, AJobWhosePodsHaveEndedIsEndingBeforeItsCondition) {
  EXPECT_EQ(Read(JobItem(), {PodItem("Succeeded")}).phase, Phase::kEnding);
  EXPECT_EQ(Read(JobItem(2), {PodItem("Failed"), PodItem("Succeeded")}).phase, Phase::kEnding);
  Json job = JobItem();
  job["status"]["conditions"] = {Condition("FailureTarget", "BackoffLimitExceeded", "")};
  EXPECT_EQ(Read(job, {PodItem("Running")}).phase, Phase::kEnding);
}

TEST(KubernetesJobs, APodOfALostNodeDoesNotRun) {
  Json pod = PodItem("Running");
  pod["metadata"]["deletionTimestamp"] = "2026-11-30T07:59:59Z";
  EXPECT_EQ(Read(JobItem(), {pod}).phase, Phase::kEnding);
}

TEST(KubernetesJobs, ASuspendedJobIsPendingWhileItsPodsEnd) {
  Json job = JobItem();
  job["spec"]["suspend"] = true;
  Json pod = PodItem("Running");
  pod["metadata"]["deletionTimestamp"] = "2026-11-30T07:59:59Z";
  EXPECT_EQ(Read(job, {pod}).phase, Phase::kPending);
}

TEST(KubernetesJobs, APendingJobHasTheSchedulersWords) {
  Json pod = PodItem("Pending", "");
  pod["status"]["conditions"] = {{{"type", "PodScheduled"},
                                  {"status", "False"},
                                  {"reason", "Unschedulable"},
                                  {"message", "0/2 nodes are available: 2 Insufficient cpu."}}};
  const pilots::Job job = Read(JobItem(), {pod});
  EXPECT_EQ(job.phase, Phase::kPending);
  EXPECT_EQ(job.reason, "0/2 nodes are available: 2 Insufficient cpu.");
  EXPECT_EQ(job.ran, std::chrono::seconds(0));
}

TEST(KubernetesJobs, AnImageThatCannotBePulledIsAReason) {
  Json pod = PodItem("Pending");
  pod["status"]["containerStatuses"] = {
      {{"state", {{"waiting", {{"reason", "ImagePullBackOff"}, {"message", "no such image"}}}}}}};
  EXPECT_EQ(Read(JobItem(), {pod}).reason, "ImagePullBackOff: no such image");
}

TEST(KubernetesJobs, ShortensLongReasons) {
  Json pod = PodItem("Pending", "");
  std::string message;
  for (int i = 0; i < 999; ++i) message += "é";
  pod["status"]["conditions"] = {
      {{"type", "PodScheduled"}, {"status", "False"}, {"message", message}}};
  const std::string reason = Read(JobItem(), {pod}).reason;
  EXPECT_LT(reason.size(), 1010u);
  EXPECT_TRUE(reason.ends_with("é…"));
}

TEST(KubernetesJobs, ASuspendedJobIsPending) {
  Json job = JobItem();
  job["spec"]["suspend"] = true;
  EXPECT_EQ(Read(job, {}).state, "Suspended");
  EXPECT_EQ(Read(job, {}).phase, Phase::kPending);
}

TEST(KubernetesJobs, AnEvictedPodGivesTheReason) {
  Json job = JobItem();
  job["status"]["conditions"] = {Condition("Failed", "BackoffLimitExceeded", "too many")};
  Json pod = PodItem("Failed");
  pod["status"]["conditions"] = {Condition("DisruptionTarget", "EvictionByEvictionAPI", "evicted")};
  const pilots::Job read = Read(job, {pod});
  EXPECT_EQ(read.phase, Phase::kEnded);
  EXPECT_EQ(read.state, "Failed");
  EXPECT_EQ(read.reason, "EvictionByEvictionAPI: evicted");
  EXPECT_EQ(read.ran, std::chrono::seconds(30)) << "until the condition changed";
  EXPECT_THAT(Read(job, {}).reason, HasSubstr("BackoffLimitExceeded"));
}

TEST(KubernetesJobs, AJobEndsAtTheDeadlineOfItsFirstPod) {
  Json pod = PodItem("Running");
  pod["spec"]["activeDeadlineSeconds"] = 600;
  const pilots::Job job = Read(JobItem(), {pod});
  EXPECT_EQ(job.left, std::chrono::seconds(510));
  EXPECT_EQ(job.ends, "2026-11-30T08:08:30Z");
  EXPECT_FALSE(Read(JobItem(), {PodItem("Running")}).left);
}

TEST(KubernetesJobs, ADeletedJobIsEnding) {
  Json job = JobItem();
  job["metadata"]["deletionTimestamp"] = "2026-11-30T07:59:59Z";
  EXPECT_EQ(Read(job, {PodItem("Running")}).phase, Phase::kEnding);
}

TEST(KubernetesJobs, TheNewestWarningExplainsAJobWithoutPods) {
  std::vector<pilots::Job> jobs = {Read(JobItem(), {})};
  EXPECT_TRUE(NeedsEvents(jobs[0]));
  const auto event = [](const std::string& type, const std::string& time,
                        const std::string& message) -> Json {
    return {{"type", type},
            {"lastTimestamp", time},
            {"message", message},
            {"involvedObject", {{"kind", "Job"}, {"name", "attune-0a1b2c3d-1"}}}};
  };
  AddReasonsOfEvents({{"items",
                       {event("Warning", "2026-11-30T07:59:02Z", "exceeded quota: b"),
                        event("Warning", "2026-11-30T07:59:01Z", "exceeded quota: a"),
                        event("Normal", "2026-11-30T07:59:03Z", "Created pod")}}},
                     jobs);
  EXPECT_EQ(jobs[0].reason, "exceeded quota: b");
}

TEST(KubernetesJobs, KueuesWordsExplainASuspendedJob) {
  Json suspended = JobItem();
  suspended["spec"]["suspend"] = true;
  std::vector<pilots::Job> jobs = {Read(suspended, {})};
  AddReasonsOfEvents(
      {{"items",
        {{{"type", "Normal"},
          {"reason", "Pending"},
          {"message", "couldn't assign flavors to pod set main: insufficient unused quota"},
          {"involvedObject", {{"kind", "Workload"}, {"name", "job-attune-0a1b2c3d-1-f3a9d"}}}}}}},
      jobs);
  EXPECT_THAT(jobs[0].reason, HasSubstr("insufficient unused quota"));
}

TEST(KubernetesJobs, ReadsNothingFromOtherDocuments) {
  EXPECT_THAT(ReadJobs(Json(), kNow), IsEmpty());
  EXPECT_THAT(ReadJobs({{"items", 3}}, kNow), IsEmpty());
  EXPECT_THAT(ReadJobs({{"items", {1, "x", nullptr, Json::object()}}}, kNow), IsEmpty());
  EXPECT_EQ(ParseTime("yesterday"), 0);
}

}  // namespace
}  // namespace attune::kubernetes
