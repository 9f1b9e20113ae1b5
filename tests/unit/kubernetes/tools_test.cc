#include "kubernetes/tools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/result.h"
#include "system/files.h"
#include "tests/support/scratch_folder.h"

namespace attune::kubernetes {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// kubectl with one recorded answer.
class RecordedKubectl final : public Commands {
 public:
  Result<CommandResult> Run(const std::vector<std::string>& argv) override {
    last = argv;
    if (on_run) on_run();
    return answer;
  }
  void Fail(std::string err) { answer = CommandResult{.exit_code = 1, .err = std::move(err)}; }

  Result<CommandResult> answer{CommandResult{}};
  std::vector<std::string> last;
  std::function<void()> on_run;
};

class KubernetesTools : public ::testing::Test {
 protected:
  const attune::testing::ScratchFolder folder_;
  RecordedKubectl kubectl_;
  Tools tools_{kubectl_, {.context = "c", .name_space = "ml"}, folder_ / "object.json"};
};

TEST_F(KubernetesTools, NamesContextAndNamespace) {
  ASSERT_TRUE(tools_.DeleteJobs({"attune-0a1b2c3d-1"}).ok());
  EXPECT_THAT(kubectl_.last, ElementsAre("kubectl", "--context=c", "--namespace=ml", "delete",
                                         "jobs", "--cascade=foreground", "--wait=false",
                                         "--ignore-not-found", "attune-0a1b2c3d-1"));
}

TEST_F(KubernetesTools, RemovesTheFileOfAnObject) {
  bool was_there = false;
  kubectl_.on_run = [&] { was_there = std::filesystem::exists(folder_ / "object.json"); };
  ASSERT_TRUE(tools_.Create({{"kind", "Job"}}).ok());
  EXPECT_TRUE(was_there);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "object.json"));
}

TEST_F(KubernetesTools, AnObjectThatExistsIsCreated) {
  kubectl_.Fail("Error from server (AlreadyExists): error when creating \"" +
                folder_ / "object.json" + "\": jobs.batch \"attune-0a1b2c3d-1\" already exists\n");
  EXPECT_TRUE(tools_.Create({{"kind", "Job"}}).ok());
}

TEST_F(KubernetesTools, ErrorsThatMayPassAreUnavailable) {
  for (const char* words :
       {"The connection to the server 127.0.0.1:6443 was refused - did you specify the right host "
        "or port?",
        "Unable to connect to the server: dial tcp 10.0.0.1:443: i/o timeout",
        "Error from server (ServiceUnavailable): the server is currently unable to handle the "
        "request",
        "Error from server: etcdserver: leader changed"}) {
    kubectl_.Fail(words);
    EXPECT_EQ(tools_.ListEvents("Job").error().code, ErrorCode::kUnavailable) << words;
  }
}

TEST_F(KubernetesTools, RefusalsNameTheNextStep) {
  const auto error = [&](const std::string& words) {
    kubectl_.Fail(words);
    const Error refused = tools_.ListEvents("Job").error();
    EXPECT_EQ(refused.code, ErrorCode::kInvalid) << words;
    EXPECT_THAT(refused.message, HasSubstr(words));
    return refused.message;
  };
  EXPECT_THAT(error("Error from server (Forbidden): jobs.batch is forbidden: User \"x\" cannot "
                    "list resource \"jobs\" in API group \"batch\" in the namespace \"ml\""),
              HasSubstr("packaging/kubernetes/attune.yaml"));
  EXPECT_THAT(error("Error from server (NotFound): namespaces \"ml\" not found"),
              HasSubstr("kubectl create namespace"));
  EXPECT_THAT(error("error: context \"c\" does not exist"), HasSubstr("get-contexts"));
  EXPECT_THAT(error("error: You must be logged in to the server (Unauthorized)"),
              HasSubstr("log in"));
}

TEST_F(KubernetesTools, ErrorsDoNotNameTheDraft) {
  kubectl_.Fail("Error from server (Forbidden): error when creating \"" + folder_ / "object.json" +
                "\": jobs.batch is forbidden: exceeded quota");
  EXPECT_THAT(tools_.Create({{"kind", "Job"}}).error().message,
              HasSubstr("(Forbidden): jobs.batch is forbidden"));
}

TEST_F(KubernetesTools, WithoutKubectlItSaysHowToInstallIt) {
  kubectl_.answer = Error{ErrorCode::kNotFound, "there is no `kubectl` in PATH on this machine"};
  const Error error = tools_.ListEvents("Job").error();
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_THAT(error.message, HasSubstr("install kubectl"));
}

TEST_F(KubernetesTools, OutputThatIsNotJsonIsAnError) {
  kubectl_.answer = CommandResult{.out = "No resources found"};
  EXPECT_EQ(tools_.ListEvents("Job").error().code, ErrorCode::kInternal);
}

TEST_F(KubernetesTools, ReadsTheMinorVersionOfTheServer) {
  kubectl_.answer = CommandResult{
      .out = R"({"clientVersion": {"minor": "20+"}, "serverVersion": {"minor": "27+"}})"};
  EXPECT_EQ(*tools_.ServerMinorVersion(), 27);
  kubectl_.answer = CommandResult{.out = R"({"clientVersion": {"minor": "20+"}})"};
  EXPECT_FALSE(tools_.ServerMinorVersion().ok());
}

TEST_F(KubernetesTools, APodHasNoContext) {
  Tools inside(kubectl_, {.name_space = "ml"}, folder_ / "object.json");
  kubectl_.Fail("error: current-context is not set");
  EXPECT_EQ(*inside.CurrentContext(), "");
  kubectl_.answer = CommandResult{.out = "cluster-1\n"};
  EXPECT_EQ(*inside.CurrentContext(), "cluster-1");
}

}  // namespace
}  // namespace attune::kubernetes
