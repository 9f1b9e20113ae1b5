#include "base/message_limits.h"

#include "server/rpc/requests.h"
#include "tests/unit/server/rpc/sessions_fixture.h"

// Tests of the limits of messages, except facts.
namespace attune::server {
namespace {

using ::testing::EndsWith;

TEST_F(SessionsTest, ALongProblemOfAHostIsCut) {
  const auto link = server->Join("box");
  v1::Health health;
  health.set_problem(std::string(5'000'000, 'P'));
  server->sessions.OnHealth(link->id, health);
  server->Run();
  const std::string& problem = server->state().executors.at("box").problem;
  EXPECT_EQ(problem.size(), kProblemBytesMax);
  EXPECT_THAT(problem, EndsWith("P… (5,000,000 bytes, cut)"));
}

TEST(Requests, ALongErrorOfAnExecutorIsCut) {
  Requests<v1::LogChunk> requests(kLogWaitLimits);
  const auto answer = requests.Await("box", [&](uint64_t request) {
    v1::LogChunk chunk;
    chunk.set_request(request);
    chunk.set_error(std::string(14'000'000, 'E'));
    requests.OnAnswer(chunk, "box");
    return true;
  });
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.error().message, EndsWith("E… (14,000,000 bytes, cut)"));
  EXPECT_LT(answer.error().message.size(), kErrorTextBytesMax + 100);
}

}  // namespace
}  // namespace attune::server
