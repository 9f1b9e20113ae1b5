#include "cli/client/sse.h"

#include <gtest/gtest.h>

namespace attune::cli {
namespace {

constexpr std::string_view kStream =
    "retry: 2000\n\n"
    ": still here\n\n"
    "id: 7\nevent: trial_changed\ndata: {\"trial\": 1}\n\n"
    "id: 8\ndata: a\ndata: b\n\n";

void ExpectStream(const std::vector<SseParser::Message>& messages) {
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].id, "7");
  EXPECT_EQ(messages[0].kind, "trial_changed");
  EXPECT_EQ(messages[0].data, "{\"trial\": 1}");
  EXPECT_EQ(messages[1].id, "8");
  EXPECT_EQ(messages[1].kind, "message");
  EXPECT_EQ(messages[1].data, "a\nb");
}

TEST(SseParser, ReadsMessagesAndSkipsComments) {
  SseParser parser;
  ExpectStream(parser.Feed(kStream));
  EXPECT_EQ(parser.retry_ms(), 2000);
}

TEST(SseParser, ChunksMayBeCutAnywhere) {
  for (size_t cut = 0; cut <= kStream.size(); ++cut) {
    SseParser parser;
    std::vector<SseParser::Message> messages = parser.Feed(kStream.substr(0, cut));
    for (SseParser::Message& message : parser.Feed(kStream.substr(cut))) {
      messages.push_back(std::move(message));
    }
    ExpectStream(messages);
  }
}

TEST(SseParser, EveryKindOfLineEndIsOne) {
  SseParser parser;
  std::vector<SseParser::Message> messages = parser.Feed("data: a\r");
  EXPECT_TRUE(messages.empty());
  EXPECT_TRUE(parser.Feed("\n").empty());
  messages = parser.Feed("\r\n");
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].data, "a");
}

TEST(SseParser, AnIdIsOfItsMessageAlone) {
  SseParser parser;
  const std::vector<SseParser::Message> messages = parser.Feed("id: 1\ndata: a\n\ndata: b\n\n");
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].id, "1");
  EXPECT_EQ(messages[1].id, "");
}

TEST(SseParser, AMessageThatNeverEndsIsNotTold) {
  SseParser parser;
  EXPECT_TRUE(parser.Feed("id: 1\ndata: half").empty());
}

}  // namespace
}  // namespace attune::cli
