#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "kubernetes/jobs.h"
#include "kubernetes/tools.h"
#include "system/files.h"
#include "tests/support/scratch_folder.h"

// Answers of releases of kubectl, which tests/e2e/kubernetes/record.py records.
namespace attune::kubernetes {
namespace {

using pilots::Phase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::filesystem::path Folder() {
  return std::filesystem::path(ATTUNE_SOURCE_DIR) / "tests/data/kubernetes";
}

std::vector<std::string> Releases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(Folder()))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

class RecordedAnswers : public ::testing::TestWithParam<std::string>, public Commands {
 protected:
  std::string Text(const std::string& file) { return *ReadWhole(Folder() / GetParam() / file); }
  Json File(const std::string& file) { return ParseJson<Json>(Text(file)); }

  Result<CommandResult> Run(const std::vector<std::string>& /*argv*/) override { return answer_; }
  Error ErrorOf(const std::string& name) {
    answer_ = {.exit_code = 1, .err = File("errors.json").at(name).get<std::string>()};
    return tools_.ListEvents("Job").error();
  }

  CommandResult answer_;
  Tools tools_{*this, {.context = "c", .name_space = "ml"}, "/nonexistent/object.json"};
};

TEST_P(RecordedAnswers, PilotsInAllStates) {
  const Json list = File("jobs-and-pods.json");
  std::vector<pilots::Job> jobs = ReadJobs(list, ParseTime("2026-11-30T13:00:00Z"));
  std::ranges::sort(jobs, {}, &pilots::Job::name);
  AddReasonsOfEvents(File("events.json"), jobs);
  ASSERT_EQ(jobs.size(), 6u);
  const auto& [running, unschedulable, image, suspended, quota, deadline] =
      std::tie(jobs[0], jobs[1], jobs[2], jobs[3], jobs[4], jobs[5]);
  EXPECT_EQ(running.phase, Phase::kRunning);
  EXPECT_THAT(running.node, ::testing::StartsWith("n"));
  EXPECT_EQ(running.reason, "");
  for (const pilots::Job* waits : {&unschedulable, &image, &suspended, &quota}) {
    EXPECT_EQ(waits->phase, Phase::kPending) << waits->name;
    EXPECT_EQ(waits->node == "", waits != &image);
  }
  EXPECT_THAT(unschedulable.reason, HasSubstr("Insufficient nvidia.com/gpu"));
  EXPECT_THAT(image.reason, HasSubstr("ImagePullBackOff"));
  EXPECT_EQ(suspended.state, kSuspended);
  EXPECT_THAT(quota.reason, HasSubstr("exceeded quota"));
  EXPECT_EQ(deadline.phase, Phase::kEnded);
  EXPECT_EQ(deadline.state, "Failed");
  EXPECT_THAT(deadline.reason, HasSubstr("DeadlineExceeded"));
}

TEST_P(RecordedAnswers, VersionOfTheServer) {
  answer_ = {.out = Text("version.json")};
  EXPECT_EQ(*tools_.ServerMinorVersion(), 37);
}

TEST_P(RecordedAnswers, Refusals) {
  EXPECT_THAT(ErrorOf("forbidden").message, HasSubstr("packaging/kubernetes/attune.yaml"));
  EXPECT_THAT(ErrorOf("unauthorized").message, HasSubstr("log in"));
  EXPECT_THAT(ErrorOf("no_namespace").message, HasSubstr("kubectl create namespace"));
  EXPECT_THAT(ErrorOf("no_context").message, HasSubstr("get-contexts"));
  EXPECT_THAT(ErrorOf("quota").message, HasSubstr("--nodes"));
  EXPECT_THAT(ErrorOf("no_pod").message, HasSubstr("pods \"nowhere\" not found"));
  for (const char* name :
       {"forbidden", "unauthorized", "no_namespace", "no_context", "quota", "invalid"})
    EXPECT_EQ(ErrorOf(name).code, ErrorCode::kInvalid) << name;
}

TEST_P(RecordedAnswers, AServerThatIsAwayMayComeBack) {
  const Error error = ErrorOf("refused");
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, Not(HasSubstr("memcache.go"))) << "only the last line is for users";
}

TEST_P(RecordedAnswers, AnObjectThatExistsIsCreated) {
  ErrorOf("already_exists");
  const attune::testing::ScratchFolder folder;
  EXPECT_TRUE(
      Tools(*this, {.name_space = "ml"}, folder / "object.json").Create({{"kind", "Job"}}).ok());
}

INSTANTIATE_TEST_SUITE_P(Kubectl, RecordedAnswers, ::testing::ValuesIn(Releases()),
                         [](const auto& release) {
                           std::string name = "Release" + release.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

TEST(RecordedReleases, AreThree) {
  EXPECT_THAT(Releases(), ElementsAre("1.20.2", "1.32.4", "1.37.2"));
}

}  // namespace
}  // namespace attune::kubernetes
