#include "cli/client/event_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "base/result.h"
#include "system/mailbox.h"
#include "tests/unit/cli/fake_server.h"

namespace attune::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Records the calls of a stream as words: "open", "gap", "event 7", "lost", "refused".
class Diary {
 public:
  EventStream::Handler Handler() {
    return {.on_open = [this](bool gap) { words_.Post(gap ? "gap" : "open"); },
            .on_event =
                [this](const ServerEvent& event) {
                  words_.Post(event.kind + ' ' + std::to_string(event.seq));
                },
            .on_lost = [this](const Error&) { words_.Post("lost"); },
            .on_refused = [this](const Error& error) { words_.Post("refused: " + error.message); }};
  }

  // The next `count` words, or fewer if they do not come.
  std::vector<std::string> Next(size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    std::vector<std::string> words;
    while (words.size() < count && std::chrono::steady_clock::now() < deadline) {
      for (std::string& word : words_.TakeUntil(deadline)) words.push_back(std::move(word));
    }
    return words;
  }

 private:
  Mailbox<std::string> words_;
};

TEST(EventStream, StartsWithTheNextEventByDefault) {
  FakeServer server;
  server.Tell("trial_created", {{"trial", 0}});
  Diary diary;
  const EventStream stream(server.endpoint(), "s1", std::nullopt, diary.Handler());
  EXPECT_THAT(diary.Next(1), ElementsAre("gap"));

  server.Tell("trial_changed", {{"trial", 0}});
  EXPECT_THAT(diary.Next(1), ElementsAre("trial_changed 2"));
}

TEST(EventStream, DeliversEveryEventFromZero) {
  FakeServer server;
  server.Tell("sweep_created", {{"name", "x"}});
  server.Tell("trial_created", {{"trial", 0}});
  Diary diary;
  const EventStream stream(server.endpoint(), "s1", 0, diary.Handler());
  EXPECT_THAT(diary.Next(3), ElementsAre("open", "sweep_created 1", "trial_created 2"));
}

TEST(EventStream, ResumesAfterTheLastEventWithoutDuplicates) {
  FakeServer server;
  server.Tell("sweep_created", {{"name", "x"}});
  Diary diary;
  const EventStream stream(server.endpoint(), "s1", 0, diary.Handler());
  EXPECT_THAT(diary.Next(2), ElementsAre("open", "sweep_created 1"));

  server.BreakStreams();
  EXPECT_THAT(diary.Next(2), ElementsAre("lost", "open"));
  EXPECT_EQ(server.last_event_id(), "1");

  server.Tell("trial_created", {{"trial", 0}});
  EXPECT_THAT(diary.Next(1), ElementsAre("trial_created 2"));
}

TEST(EventStream, DeliversAllEventsOfOneSequenceNumber) {
  FakeServer server;
  server.TellAsOne({{"trial_decided", {{"seq", 1}, {"trial", 0}}},
                    {"trial_changed", {{"seq", 1}, {"trial", 0}}}});
  Diary diary;
  const EventStream stream(server.endpoint(), "s1", 0, diary.Handler());
  EXPECT_THAT(diary.Next(3), ElementsAre("open", "trial_decided 1", "trial_changed 1"));
}

TEST(EventStream, AWrongTokenIsRefusedForGood) {
  const FakeServer server;
  Diary diary;
  const EventStream stream({server.url(), "wrong", "the test"}, "s1", 0, diary.Handler());
  EXPECT_THAT(diary.Next(1), ElementsAre(HasSubstr("--token-file")));
}

TEST(EventStream, EndsPromptlyWhileNothingHappens) {
  const FakeServer server;
  const auto started = std::chrono::steady_clock::now();
  {
    Diary diary;
    const EventStream stream(server.endpoint(), "s1", std::nullopt, diary.Handler());
    EXPECT_THAT(diary.Next(1), ElementsAre("gap"));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(5));
}

}  // namespace
}  // namespace attune::cli
