#include "cli/client/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/cli/fake_server.h"

namespace attune::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Api, WrongTokenIsDeniedWithTheRemedy) {
  const FakeServer server;
  Api api({server.url(), "wrong", "the test"});
  const Result<Json> sweeps = api.Sweeps();
  ASSERT_FALSE(sweeps.ok());
  EXPECT_EQ(sweeps.error().code, ErrorCode::kDenied);
  EXPECT_THAT(sweeps.error().message, AllOf(HasSubstr("wrong token"), HasSubstr("--token-file")));
}

TEST(Api, UnknownSweepIsNotFoundInTheServersWords) {
  const FakeServer server;
  Api api(server.endpoint());
  const Result<Json> sweep = api.Sweep("s9");
  ASSERT_FALSE(sweep.ok());
  EXPECT_EQ(sweep.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(sweep.error().message, HasSubstr("no such sweep"));
}

TEST(Api, NoServerSaysWhereItLookedAndHowToStartOne) {
  Endpoint endpoint;
  {
    const FakeServer server;
    endpoint = server.endpoint();
  }
  Api api(endpoint);
  const Result<Json> sweeps = api.Sweeps();
  ASSERT_FALSE(sweeps.ok());
  EXPECT_EQ(sweeps.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(sweeps.error().message,
              AllOf(HasSubstr(endpoint.url), HasSubstr("refused"), HasSubstr("attune serve")));
}

TEST(Api, AnIdThatIsNoIdNeverBecomesAPath) {
  const FakeServer server;
  Api api(server.endpoint());
  EXPECT_EQ(api.Sweep("../executors").error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(server.requests().empty());
}

TEST(Api, AnswersThatAreNoJsonAreNotBelieved) {
  FakeServer server;
  server.AnswerText("/sweeps/s1", "<html>router login</html>");
  Api api(server.endpoint());
  EXPECT_EQ(api.Sweep("s1").error().code, ErrorCode::kCorrupt);
}

TEST(Api, AProblemThatIsNoProblemDocumentKeepsItsStatus) {
  FakeServer server;
  server.Answer("/sweeps/s1", {{"errors", "many"}, {"title", 7}}, 500);
  Api api(server.endpoint());
  EXPECT_THAT(api.Sweep("s1").error().message, HasSubstr("HTTP 500"));
}

TEST(Api, CreatingSendsTheTextAndWhereItLies) {
  FakeServer server;
  server.AnswerPost("/sweeps", SweepJson("s1", "running"), 201);
  const ScratchFolder folder;
  const std::string file = folder.Write("a sweep.yaml", "name: x\n");
  Api api(server.endpoint());

  const Result<Json> sweep = api.CreateSweep(*SweepDocument::Read(file));

  ASSERT_TRUE(sweep.ok()) << sweep.error().message;
  EXPECT_EQ(TextAt(*sweep, "id"), "s1");
  EXPECT_EQ(server.last_body(), "name: x\n");
  ASSERT_EQ(server.requests().size(), 1u);
  EXPECT_THAT(server.requests()[0], HasSubstr("file=a%20sweep.yaml"));
}

TEST(Api, FaultsOfASweepFileArePlacesInIt) {
  FakeServer server;
  server.AnswerPost("/sweeps",
                    {{"title", "the sweep file is wrong"},
                     {"status", 422},
                     {"errors",
                      {{{"pointer", "/parameters/lr/max"},
                        {"line", 9},
                        {"column", 10},
                        {"message", "0.001 is below min 0.1"}}}}},
                    422);
  const ScratchFolder folder;
  const std::string file = folder.Write("sweep.yaml", "name: x\n");
  Api api(server.endpoint());
  const Result<Json> sweep = api.CreateSweep(*SweepDocument::Read(file));
  ASSERT_FALSE(sweep.ok());
  EXPECT_EQ(sweep.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(sweep.error().message, file + ":9:10: /parameters/lr/max: 0.001 is below min 0.1");
}

TEST(Api, ALogTellsWhereItsBytesLie) {
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

TEST(TrialName, IsOneWordOrTwo) {
  EXPECT_EQ(TrialName::Parse({"s1/17"})->number, 17);
  EXPECT_EQ(TrialName::Parse({"s1", "17"})->sweep, "s1");
  for (const char* wrong : {"s1", "17", "s1/", "s1/x", "s1/1/2", "/1", "s1/-1"}) {
    EXPECT_FALSE(TrialName::Parse({wrong}).ok()) << wrong;
  }
}

TEST(SweepDocument, ThatIsMissingOrTooLargeIsAnError) {
  const ScratchFolder folder;
  EXPECT_EQ(SweepDocument::Read(folder.path() / "none.yaml").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(SweepDocument::Read(folder.path()).error().code, ErrorCode::kNotFound);
  const std::string limit = folder.Write("limit.yaml", std::string(1 << 20, '#'));
  EXPECT_TRUE(SweepDocument::Read(limit).ok());
  const std::string above = folder.Write("above.yaml", std::string((1 << 20) + 1, '#'));
  EXPECT_EQ(SweepDocument::Read(above).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace attune::cli
