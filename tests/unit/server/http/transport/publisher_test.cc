#include "server/http/transport/publisher.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>

namespace attune::server {
namespace {

constexpr EventSeq kLast{1'000'000};
constexpr SweepId kFiltered{1};
constexpr SweepId kLive{2};

// A long log. Reading it for the filtered sweep takes 5 ms and finds nothing.
class LongFeed final : public EventFeed {
 public:
  EventSeq WaitForEvents(EventSeq, int) override { return kLast; }

  std::optional<Page> ReadAfter(EventSeq after, std::optional<SweepId> sweep) override {
    if (sweep != kFiltered) return Page{.seen = kLast, .text = "live"};
    ++filtered_reads;
    ++reads_of[after.value / 1000 % reads_of.size()];
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // simulates work
    return Page{.seen = EventSeq(after.value + 1), .text = "", .more = true};
  }

  std::atomic<int> filtered_reads{0};
  std::array<std::atomic<int>, 128> reads_of{};  // index: first event of the stream, in thousands
};

TEST(PublisherTest, StreamsFarBehindDoNotDelayOthers) {
  constexpr int kStreams = 100;
  LongFeed feed;
  std::counting_semaphore<> delivered(0);
  Publisher publisher(
      feed, [&](Publisher::StreamId, const std::optional<std::string>&) { delivered.release(); },
      [] {});
  for (uint64_t i = 1; i <= kStreams; ++i) publisher.AddStream(i, EventSeq(1000 * i), kFiltered);
  while (feed.filtered_reads < 2 * kStreams) std::this_thread::yield();

  const int before = feed.filtered_reads;
  publisher.AddStream(kStreams + 1, EventSeq(kLast.value - 1), kLive);
  delivered.acquire();
  // At most the rest of one round: a round ends after 20 ms, so after five reads.
  EXPECT_LE(feed.filtered_reads - before, 6);
}

TEST(PublisherTest, StreamsFarBehindTakeTurns) {
  LongFeed feed;
  Publisher publisher(
      feed, [](Publisher::StreamId, const std::optional<std::string>&) {}, [] {});
  constexpr int kStreams = 20;
  for (uint64_t i = 1; i <= kStreams; ++i) publisher.AddStream(i, EventSeq(1000 * i), kFiltered);
  while (feed.filtered_reads < 3 * kStreams) std::this_thread::yield();
  for (uint64_t i = 1; i <= kStreams; ++i) EXPECT_GE(feed.reads_of[i], 2) << i;
}

}  // namespace
}  // namespace attune::server
