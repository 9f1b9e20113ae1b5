#include "cli/client/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/result.h"
#include "tests/unit/cli/fake_server.h"

namespace attune::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Api, NamesTheOptionForAWrongToken) {
  const FakeServer server;
  Api api({server.url(), "wrong", "the test"});
  const auto sweeps = api.Sweeps();
  ASSERT_FALSE(sweeps.ok());
  EXPECT_EQ(sweeps.error().code, ErrorCode::kDenied);
  EXPECT_THAT(sweeps.error().message, HasSubstr("--token-file"));
}

TEST(Api, SendsNoTokenToAProgramOnThePortOfADeadServer) {
  const ScratchFolder folder;
  FakeServer server;
  server.Answer("/sweeps/s1", SweepJson("s1", "running"));
  server.WriteTo(folder.path());
  Api api(FindServer({.data_dir = folder.path()}).value());
  ASSERT_TRUE(api.Sweep("s1").ok());
  const size_t before = server.requests().size();
  server.Leave();
  const auto sweep = api.Sweep("s1");
  ASSERT_FALSE(sweep.ok());
  EXPECT_EQ(sweep.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(server.requests().size(), before);
}

TEST(Api, FollowsAServerThatRestartsOnAnotherPort) {
  const ScratchFolder folder;
  FakeServer server;
  server.Answer("/sweeps/s1", SweepJson("s1", "running"));
  server.WriteTo(folder.path());
  Api api(FindServer({.data_dir = folder.path()}).value());
  ASSERT_TRUE(api.Sweep("s1").ok());
  server.Leave();
  FakeServer next;
  next.Answer("/sweeps/s1", SweepJson("s1", "running"));
  next.WriteTo(folder.path());
  EXPECT_TRUE(api.Sweep("s1").ok());
  EXPECT_EQ(next.requests().size(), 1u);
}

TEST(Api, KeepsTheServersMessageForAnUnknownSweep) {
  const FakeServer server;
  Api api(server.endpoint());
  const auto sweep = api.Sweep("s9");
  ASSERT_FALSE(sweep.ok());
  EXPECT_EQ(sweep.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(sweep.error().message, HasSubstr("no such sweep"));
}

TEST(Api, SuggestsTheListOnlyForAnUnknownSweep) {
  FakeServer server;
  Api api(server.endpoint());
  server.Answer("/sweeps/s9", ProblemJson(404, "Not found", "there is no sweep s9"), 404);
  EXPECT_THAT(api.Sweep("s9").error().message, HasSubstr("`attune sweep list`"));
  server.Answer("/sweeps/s1/trials/7", ProblemJson(404, "Not found", "there is no trial"), 404);
  EXPECT_EQ(api.Trial({"s1", 7}).error().message, "Not found: there is no trial");
}

TEST(Api, RefusesMalformedIds) {
  const FakeServer server;
  Api api(server.endpoint());
  for (const char* wrong : {"py", "s", "7", "s1x", "S1", ""}) {
    const auto sweep = api.Sweep(wrong);
    EXPECT_EQ(sweep.error().code, ErrorCode::kInvalid) << wrong;
    EXPECT_THAT(sweep.error().message, HasSubstr("such as s1"));
  }
  EXPECT_TRUE(server.requests().empty());
}

TEST(Api, ListsEachFaultOfABodyOnce) {
  FakeServer server;
  const Json wrong = ProblemJson(422, "The body is wrong", "line:1:10: lease: too short",
                                 {{"/lease", 1, 10, "too short"},
                                  {"/tags/2", 1, 20, "is empty"},
                                  {"/config/a~1b~01", 0, 0, "no such parameter"}});
  server.AnswerPost("/sweeps/s1/trials:ask", wrong, 422);
  Api api(server.endpoint());
  EXPECT_EQ(api.AskTrial("s1", {.lease = "3"}).error().message,
            "lease: too short\ntags[2]: is empty\nconfig.a/b~1: no such parameter");
  server.AnswerPost("/sweeps/s1:edit",
                    ProblemJson(422, "The body is wrong", "max_step can only grow"), 422);
  EXPECT_EQ(api.SteerSweep("s1", "edit").error().message, "max_step can only grow");
}

TEST(Api, NamesTheAddressAndTheNextStepIfNoServerAnswers) {
  Endpoint endpoint;
  {
    const FakeServer server;
    endpoint = server.endpoint();
  }
  Api api(endpoint);
  const auto sweeps = api.Sweeps();
  ASSERT_FALSE(sweeps.ok());
  EXPECT_EQ(sweeps.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(sweeps.error().message, AllOf(HasSubstr(endpoint.url), HasSubstr("attune serve")));
}

TEST(Api, NeverPutsAMalformedIdIntoAPath) {
  const FakeServer server;
  Api api(server.endpoint());
  EXPECT_EQ(api.Sweep("../executors").error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(server.requests().empty());
}

TEST(Api, RefusesAnswersThatAreNotJson) {
  FakeServer server;
  server.AnswerText("/sweeps/s1", "<html>router login</html>");
  Api api(server.endpoint());
  EXPECT_EQ(api.Sweep("s1").error().code, ErrorCode::kCorrupt);
}

TEST(Api, NamesTheMemberThatAnAnswerLacks) {
  FakeServer server;
  Json sweep = SweepJson("s1", "running");
  sweep.erase("end_state");
  server.Answer("/sweeps/s1", sweep);
  Api api(server.endpoint());
  EXPECT_THAT(api.Sweep("s1").error().message, HasSubstr("end_state"));
}

TEST(Api, ReadsAllPagesOfLists) {
  FakeServer server;
  server.Answer("/sweeps/s1/trials", {{"trials", {TrialJson(0, "running")}},
                                      {"next_page_token", "x"},
                                      {"seq", 9},
                                      {"total_size", 1}});
  server.Answer("/sweeps/s1/trials?page_size=1000&page_token=x",
                {{"trials", {TrialJson(1, "running")}},
                 {"next_page_token", ""},
                 {"seq", 9},
                 {"total_size", 1}});
  Api api(server.endpoint());

  const auto list = api.Trials("s1");

  ASSERT_TRUE(list.ok()) << list.error().message;
  ASSERT_EQ(list->trials.size(), 2u);
  EXPECT_EQ(list->trials[1].number, 1);
  EXPECT_EQ(list->document, (Json{{"trials", {TrialJson(0, "running"), TrialJson(1, "running")}},
                                  {"next_page_token", ""},
                                  {"seq", 9},
                                  {"total_size", 1}}));
}

TEST(Api, ReadsNoMoreTrialsThanTheLimit) {
  FakeServer server;
  const auto page = [](int number) {
    return Json{{"trials", {TrialJson(number, "running")}},
                {"next_page_token", "x"},
                {"seq", 9},
                {"total_size", 40}};
  };
  server.Answer("/sweeps/s1/trials", page(0));
  server.Answer("/sweeps/s1/trials?page_size=1&page_token=x", page(1));
  Api api(server.endpoint());

  const auto list = api.Trials("s1", {.order_by = {}, .filter = {}, .limit = 2});

  ASSERT_TRUE(list.ok()) << list.error().message;
  EXPECT_EQ(list->trials.size(), 2u);
}

TEST(Api, KeepsTheStatusOfAMalformedProblem) {
  FakeServer server;
  server.Answer("/sweeps/s1", {{"errors", "many"}, {"title", 7}}, 500);
  Api api(server.endpoint());
  EXPECT_THAT(api.Sweep("s1").error().message, HasSubstr("HTTP 500"));
}

TEST(Api, SendsTheTextAndPathOfANewSweep) {
  FakeServer server;
  server.AnswerPost("/sweeps", SweepJson("s1", "running"), 201);
  const ScratchFolder folder;
  const std::string file = folder.Write("a sweep.yaml", "name: x\n");
  Api api(server.endpoint());

  const auto sweep = api.CreateSweep(*SweepDocument::Read(file));

  ASSERT_TRUE(sweep.ok()) << sweep.error().message;
  EXPECT_EQ(sweep->id, "s1");
  EXPECT_EQ(server.last_body(), "name: x\n");
  ASSERT_EQ(server.requests().size(), 1u);
  EXPECT_THAT(server.requests()[0], HasSubstr("file=a%20sweep.yaml"));
}

TEST(Api, GivesFaultsOfASweepFileWithLines) {
  FakeServer server;
  server.AnswerPost("/sweeps",
                    ProblemJson(422, "the sweep file is wrong", "…",
                                {{"/parameters/lr/max", 9, 10, "0.001 is below min 0.1"}}),
                    422);
  const ScratchFolder folder;
  const std::string file = folder.Write("sweep.yaml", "name: x\n");
  Api api(server.endpoint());
  const auto sweep = api.CreateSweep(*SweepDocument::Read(file));
  ASSERT_FALSE(sweep.ok());
  EXPECT_EQ(sweep.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(sweep.error().message, file + ":9:10: parameters.lr.max: 0.001 is below min 0.1");
}

TEST(Api, ReadsTheOffsetOfALog) {
  FakeServer server;
  server.AnswerText("/sweeps/s1/trials/3/logs", "last words\n",
                    {{"X-Log-Offset", "100"}, {"X-Log-Size", "111"}});
  Api api(server.endpoint());
  const Result<Api::LogSlice> slice = api.Log({"s1", 3}, 1, 2, 100);
  ASSERT_TRUE(slice.ok());
  EXPECT_EQ(slice->data, "last words\n");
  EXPECT_EQ(slice->offset, 100);
  EXPECT_EQ(slice->file_bytes, 111);
  EXPECT_THAT(server.requests()[0], AllOf(HasSubstr("attempt=2"), HasSubstr("rank=1")));
}

TEST(TrialName, ParsesOneWordOrTwo) {
  EXPECT_EQ(TrialName::Parse({"s1/17"})->number, 17);
  EXPECT_EQ(TrialName::Parse({"s1", "17"})->sweep, "s1");
  for (const char* wrong : {"s1", "17", "s1/", "s1/x", "s1/1/2", "/1", "s1/-1"}) {
    EXPECT_FALSE(TrialName::Parse({wrong}).ok()) << wrong;
  }
}

TEST(SweepDocument, NamesTheReasonIfTheFileIsNotReachable) {
  const ScratchFolder folder;
  const std::filesystem::path loop = folder.path() / "loop";
  std::filesystem::create_symlink(loop, loop);
  const Error error = SweepDocument::Read(loop / "sweep.yaml").error();
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr(std::strerror(ELOOP)));
}

TEST(SweepDocument, RefusesAMissingOrTooLargeFile) {
  const ScratchFolder folder;
  const Error none = SweepDocument::Read(folder.path() / "none.yaml").error();
  EXPECT_EQ(none.code, ErrorCode::kNotFound);
  EXPECT_THAT(none.message, HasSubstr(std::string("none.yaml: ") + std::strerror(ENOENT)));
  const Error is_folder = SweepDocument::Read(folder.path()).error();
  EXPECT_EQ(is_folder.code, ErrorCode::kNotFound);
  EXPECT_THAT(is_folder.message, HasSubstr("a folder"));
  const std::string limit = folder.Write("limit.yaml", std::string(1 << 20, '#'));
  EXPECT_TRUE(SweepDocument::Read(limit).ok());
  const std::string above = folder.Write("above.yaml", std::string((1 << 20) + 1, '#'));
  EXPECT_EQ(SweepDocument::Read(above).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace attune::cli
