#include "trainable/distributed/relay.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <atomic>
#include <barrier>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "attune/error.h"
#include "system/unique_fd.h"
#include "trainable/base/sockets.h"

namespace attune::inline sdk::trainable {
namespace {

// The ranks of a gang as threads, each of which makes its relay and has it used.
template <typename Use>
void RunGang(int world_size, const std::string& host, const Use& use) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    ranks.emplace_back([&, rank] { use(rank, Relay(*store, rank, world_size, host)); });
  }
}

std::int64_t Told(Relay& relay, std::int64_t value) {
  relay.Tell(std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

TEST(RelayTest, EveryRankHearsAllThatRankZeroSaysInItsOrder) {
  for (const char* host : {"", "127.0.0.1"}) {
    for (int world_size = 1; world_size <= 17; ++world_size) {
      RunGang(world_size, host, [&](int rank, Relay relay) {
        for (std::int64_t step = 1; step <= 100; ++step) {
          EXPECT_EQ(Told(relay, rank == 0 ? step : -1), step) << "on rank " << rank;
        }
      });
    }
  }
}

TEST(RelayTest, RankZeroWaitsForNobody) {
  RunGang(2, "", [](int rank, Relay relay) {
    static std::atomic<bool> said;
    constexpr int kSteps = 50'000;  // more than a socket holds
    if (rank == 0) {
      for (int step = 0; step < kSteps; ++step) Told(relay, step);
      said = true;
      said.notify_all();
    } else {
      said.wait(false);
      EXPECT_TRUE(relay.HasWord(std::chrono::seconds(0)));
      for (int step = 0; step < kSteps; ++step) ASSERT_EQ(Told(relay, -1), step);
    }
    relay.Leave();
  });
}

TEST(RelayTest, RankZeroCanLeaveARankThatNeverListens) {
  RunGang(2, "", [](int rank, Relay relay) {
    for (int step = 0; rank == 0 && step < 50'000; ++step) Told(relay, step);
    relay.Leave();
    // Its process does not end before rank 0 has left.
    static std::barrier both(2);
    both.arrive_and_wait();
  });
}

TEST(RelayTest, LateRanksHearAllThatRankZeroSaidBeforeItLeft) {
  for (const char* host : {"", "127.0.0.1"}) {
    std::atomic<bool> has_left = false;
    RunGang(4, host, [&](int rank, Relay relay) {
      if (rank > 0) has_left.wait(false);
      for (std::int64_t step = 1; step <= 3; ++step) {
        EXPECT_EQ(Told(relay, rank == 0 ? step : -1), step) << "on rank " << rank;
      }
      relay.Leave();
      if (rank > 0) return;
      { const Relay ended = std::move(relay); }  // as at the end of its process
      has_left = true;
      has_left.notify_all();
    });
  }
}

TEST(RelayTest, ARankThatIsGoneIsALostPeerToThoseNextToIt) {
  RunGang(4, "", [](int rank, Relay relay) {
    if (rank == 1) return;  // it has its word from rank 0, and tells rank 3
    const auto tell_for_ever = [&] {
      while (true) Told(relay, 0);
    };
    EXPECT_THROW(tell_for_ever(), c10::DistNetworkError);  // rank 2: once rank 0 has left
  });
}

// What rank 0 has told the store: a password of 16 bytes, then its socket's name.
UniqueFd Visit(c10d::Store& store) {
  const std::vector<std::uint8_t> place = store.get("relay/0");
  UniqueFd visitor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* name = reinterpret_cast<const sockaddr*>(place.data() + 16);
  EXPECT_EQ(connect(visitor.get(), name, sizeof(sockaddr_in)), 0);
  return visitor;
}

TEST(RelayTest, WhoDoesNotKnowThePasswordIsNoRank) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::jthread rank_zero([&] {
    Relay relay(*store, 0, 2, "127.0.0.1");
    Told(relay, 7);
  });
  const UniqueFd guesses = Visit(*store);
  EXPECT_EQ(send(guesses.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
  EXPECT_TRUE(Visit(*store).valid());  // and leaves
  Relay relay(*store, 1, 2, "127.0.0.1");
  EXPECT_EQ(Told(relay, -1), 7);
}

TEST(RelayTest, ARankThatLeftBeforeTheNextOneCameIsALostPeer) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  UniqueFd gone(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(name);
  ASSERT_EQ(bind(gone.get(), reinterpret_cast<sockaddr*>(&name), size), 0);
  ASSERT_EQ(getsockname(gone.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
  std::vector<std::uint8_t> place(16);  // nobody listens there
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&name);
  place.insert(place.end(), bytes, bytes + size);
  store->set("relay/0", place);
  EXPECT_THROW(Relay(*store, 1, 2, "127.0.0.1"), c10::DistNetworkError);
}

TEST(RelayTest, AnAddressThatIsNoneIsSaid) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  EXPECT_THROW(Relay(*store, 0, 2, "nowhere"), Error);
}

}  // namespace
}  // namespace attune::inline sdk::trainable
