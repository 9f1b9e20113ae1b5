#include "kubernetes/pilot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/result.h"

namespace attune::kubernetes {
namespace {

using ::testing::HasSubstr;

// A correct template in one line.
constexpr const char* kTemplate = R"({
  "apiVersion": "batch/v1", "kind": "Job", "metadata": {"creationTimestamp": null},
  "spec": {"template": {"spec": {"containers": [
    {"name": "executor", "image": "attune",
     "resources": {"limits": {"cpu": "8", "memory": "16Gi", "nvidia.com/gpu": 2}}}]}}}})";

Json Base() { return ParseJson<Json>(kTemplate); }

Template Checked(const Json& job) { return *CheckTemplate(job, "job.yaml"); }

std::string Refusal(const Json& job) {
  const auto checked = CheckTemplate(job, "job.yaml");
  return checked.ok() ? "" : checked.error().message;
}

// The word after an option of the executor's command.
std::string OptionOf(const Json& job, const std::string& option) {
  const Json& command = job["spec"]["template"]["spec"]["containers"][0]["command"];
  for (size_t i = 0; i + 1 < command.size(); ++i)
    if (command[i] == option) return command[i + 1].get<std::string>();
  return "";
}

const PilotOptions kOptions{.fleet = "0a1b2c3d",
                            .server = "attune:7071",
                            .labels = {"gpu=h100", "path=$(HOME)"},
                            .give_up = std::chrono::seconds(600),
                            .owner_uid = "u-1"};

TEST(KubernetesPilot, ReadsResourcesOfTheContainer) {
  const Template base = Checked(Base());
  EXPECT_EQ(base.resources, (pilots::Resources{8, 2, int64_t{16} << 30}));
  EXPECT_EQ(base.grace, std::chrono::seconds(30));
}

TEST(KubernetesPilot, RequestsCountIfThereAreNoLimits) {
  Json job = Base();
  Json& container = job["spec"]["template"]["spec"]["containers"][0];
  container["resources"] = {{"requests", {{"cpu", "1500m"}}}};
  EXPECT_EQ(Checked(job).resources, (pilots::Resources{1, 0, 0}));
}

TEST(KubernetesPilot, RefusesFieldsThatAttuneWrites) {
  const auto refused = [](const std::string& pointer, const Json& value) {
    Json job = Base();
    job[Json::json_pointer(pointer)] = value;
    return Refusal(job);
  };
  EXPECT_THAT(refused("/metadata/name", "mine"), HasSubstr("job.yaml: metadata.name: "));
  EXPECT_THAT(refused("/metadata/labels/attune.dev~1fleet", "x"), HasSubstr("attune.dev/fleet"));
  EXPECT_THAT(refused("/spec/parallelism", 2), HasSubstr("spec.parallelism: "));
  EXPECT_THAT(refused("/spec/backoffLimit", 6), HasSubstr("spec.backoffLimit: it is 6"));
  EXPECT_THAT(refused("/spec/template/spec/restartPolicy", "OnFailure"),
              HasSubstr("spec.template.spec.restartPolicy: "));
  EXPECT_THAT(refused("/spec/template/spec/containers/0/args", Json::array({"x"})),
              HasSubstr("spec.template.spec.containers[0].args: "));
  EXPECT_THAT(refused("/spec/template/spec/terminationGracePeriodSeconds", 5),
              HasSubstr("terminationGracePeriodSeconds"));
  EXPECT_THAT(refused("/kind", "Deployment"), HasSubstr("it is a batch/v1 Deployment"));
  EXPECT_EQ(refused("/spec/backoffLimit", 0), "");
  EXPECT_EQ(refused("/spec/completionMode", "Indexed"), "");
}

TEST(KubernetesPilot, RefusesOtherNumbersOfContainersThanOne) {
  Json job = Base();
  Json& containers = job["spec"]["template"]["spec"]["containers"];
  containers.push_back(containers[0]);
  EXPECT_THAT(Refusal(job), HasSubstr("containers: there are 2"));
  containers = Json::array();
  EXPECT_THAT(Refusal(job), HasSubstr("containers: there are 0"));
  containers = nullptr;
  EXPECT_THAT(Refusal(job), HasSubstr("containers: there are 0"));
  EXPECT_THAT(Refusal({{"apiVersion", "batch/v1"}, {"kind", "Job"}}), HasSubstr("there are 0"));
}

TEST(KubernetesPilot, RefusesATemplateWithoutCpus) {
  Json job = Base();
  Json& limits = job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"];
  limits["cpu"] = "500m";
  EXPECT_THAT(Refusal(job), HasSubstr("limits.cpu: `500m`"));
  limits.erase("cpu");
  EXPECT_THAT(Refusal(job), HasSubstr("limits.cpu: write"));
}

TEST(KubernetesPilot, BuildsAnIndexedJobWithOneExecutor) {
  const Json job = BuildJob(Checked(Base()), kOptions, "attune-0a1b2c3d-7");
  EXPECT_EQ(job["metadata"]["name"], "attune-0a1b2c3d-7");
  EXPECT_EQ(job["metadata"]["labels"]["attune.dev/fleet"], "0a1b2c3d");
  EXPECT_EQ(job["metadata"]["ownerReferences"][0]["uid"], "u-1");
  EXPECT_EQ(job["spec"]["template"]["metadata"]["labels"]["attune.dev/pilot"], "7");
  EXPECT_EQ(job["spec"]["completions"], 1);
  EXPECT_EQ(job["spec"]["backoffLimit"], 0);
  EXPECT_EQ(OptionOf(job, "--name"), "attune-0a1b2c3d-7");
  EXPECT_EQ(OptionOf(job, "--cpus"), "8");
  EXPECT_EQ(OptionOf(job, "--gpus"), "2");
  EXPECT_EQ(OptionOf(job, "--memory"), "16384MiB");
  EXPECT_EQ(OptionOf(job, "--grace"), "20");
  EXPECT_EQ(OptionOf(job, "--time-left"), "");
  EXPECT_THAT(job["spec"]["template"]["spec"]["containers"][0]["command"].dump(),
              HasSubstr("path=$$(HOME)"));
}

TEST(KubernetesPilot, ExecutorsOfSeveralNodesAreNamedForTheirIndex) {
  PilotOptions options = kOptions;
  options.nodes = 3;
  const Json job = BuildJob(Checked(Base()), options, "attune-0a1b2c3d-7");
  EXPECT_EQ(job["spec"]["parallelism"], 3);
  EXPECT_EQ(OptionOf(job, "--name"), "attune-0a1b2c3d-7.$(JOB_COMPLETION_INDEX)");
  EXPECT_TRUE(job["spec"]["template"]["spec"].contains("topologySpreadConstraints"));
}

TEST(KubernetesPilot, TheEarlierDeadlineBeginsWithThePod) {
  Json job = Base();
  job["spec"]["activeDeadlineSeconds"] = 3600;
  const Json built = BuildJob(Checked(job), kOptions, "attune-0a1b2c3d-1");
  EXPECT_EQ(OptionOf(built, "--time-left"), "3600");
  EXPECT_FALSE(built["spec"].contains("activeDeadlineSeconds")) << "it includes the queue";
  EXPECT_EQ(built["spec"]["template"]["spec"]["activeDeadlineSeconds"], 3600);
  job["spec"]["template"]["spec"]["activeDeadlineSeconds"] = 600;
  EXPECT_EQ(OptionOf(BuildJob(Checked(job), kOptions, "attune-0a1b2c3d-1"), "--time-left"), "600");
}

TEST(KubernetesPilot, KeepsTheUsersVolumes) {
  Json job = Base();
  Json& pod = job["spec"]["template"]["spec"];
  pod["volumes"] = {{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "data"}}}}};
  pod["containers"][0]["volumeMounts"] = {{{"name", "data"}, {"mountPath", "/dev/shm"}}};
  const Json built = BuildJob(Checked(job), kOptions, "attune-0a1b2c3d-1");
  const Json& spec = built["spec"]["template"]["spec"];
  EXPECT_THAT(spec["containers"][0]["command"].dump(), HasSubstr("--temporary-data"));
  EXPECT_EQ(spec["volumes"].size(), 3u) << "the user's, the token and the executor's data";
  EXPECT_TRUE(FindByKey(spec["volumes"], "name", "attune-shm").is_null());
}

TEST(KubernetesPilot, ParsesQuantities) {
  EXPECT_EQ(ParseQuantity("2"), 2);
  EXPECT_EQ(ParseQuantity("1500m"), 1.5);
  EXPECT_EQ(ParseQuantity("16Gi"), 0x1p34);
  EXPECT_EQ(ParseQuantity("1e9"), 1e9);
  EXPECT_EQ(ParseQuantity("1.5G"), 1.5e9);
  for (const char* wrong : {"", "x", "-1", "1X", "inf", "nan", "1 Gi"})
    EXPECT_LT(ParseQuantity(wrong), 0) << wrong;
}

TEST(KubernetesPilot, SecretHasTheTokenAndAnOwner) {
  const Json owner = {{"apiVersion", "apps/v1"},
                      {"kind", "StatefulSet"},
                      {"metadata", {{"name", "attune"}, {"uid", "u-2"}}}};
  const Json secret = BuildSecret("0a1b2c3d", "join text", owner);
  EXPECT_EQ(secret["metadata"]["name"], "attune-0a1b2c3d");
  EXPECT_EQ(secret["stringData"]["join"], "join text\n");
  EXPECT_EQ(secret["metadata"]["ownerReferences"][0]["uid"], "u-2");
  EXPECT_FALSE(BuildSecret("0a1b2c3d", "x", nullptr)["metadata"].contains("ownerReferences"));
}

}  // namespace
}  // namespace attune::kubernetes
