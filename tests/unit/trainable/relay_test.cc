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

// Runs the ranks of a gang as threads. Each creates its relay and passes it to `use`.
template <typename Use>
void RunGang(int world_size, const std::string& host, const Use& use) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    ranks.emplace_back([&, rank] { use(rank, Relay(*store, rank, world_size, host)); });
  }
}

std::int64_t Broadcast(Relay& relay, std::int64_t value) {
  relay.Broadcast(std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

TEST(RelayTest, EveryRankReceivesAllMessagesInOrder) {
  for (const char* host : {"", "127.0.0.1"}) {
    for (int world_size = 1; world_size <= 17; ++world_size) {
      RunGang(world_size, host, [&](int rank, Relay relay) {
        for (std::int64_t step = 1; step <= 100; ++step) {
          EXPECT_EQ(Broadcast(relay, rank == 0 ? step : -1), step) << "on rank " << rank;
        }
      });
    }
  }
}

TEST(RelayTest, RankZeroDoesNotWait) {
  RunGang(2, "", [](int rank, Relay relay) {
    static std::atomic<bool> has_sent;
    constexpr int kSteps = 50'000;  // more than a socket buffers
    if (rank == 0) {
      for (int step = 0; step < kSteps; ++step) Broadcast(relay, step);
      has_sent = true;
      has_sent.notify_all();
    } else {
      has_sent.wait(false);
      EXPECT_TRUE(relay.HasMessage(std::chrono::seconds(0)));
      for (int step = 0; step < kSteps; ++step) ASSERT_EQ(Broadcast(relay, -1), step);
    }
    relay.Leave();
  });
}

TEST(RelayTest, RankZeroCanLeaveBeforeARankReads) {
  RunGang(2, "", [](int rank, Relay relay) {
    for (int step = 0; rank == 0 && step < 50'000; ++step) Broadcast(relay, step);
    relay.Leave();
    // The process of rank 1 ends after rank 0 has left.
    static std::barrier both(2);
    both.arrive_and_wait();
  });
}

TEST(RelayTest, LateRanksReceiveAllMessagesFromBeforeRankZeroLeft) {
  for (const char* host : {"", "127.0.0.1"}) {
    std::atomic<bool> has_left = false;
    RunGang(4, host, [&](int rank, Relay relay) {
      if (rank > 0) has_left.wait(false);
      for (std::int64_t step = 1; step <= 3; ++step) {
        EXPECT_EQ(Broadcast(relay, rank == 0 ? step : -1), step) << "on rank " << rank;
      }
      relay.Leave();
      if (rank > 0) return;
      { const Relay ended = std::move(relay); }  // closes its sockets, like the end of its process
      has_left = true;
      has_left.notify_all();
    });
  }
}

TEST(RelayTest, AnEndedRankIsALostPeerOfItsNeighbours) {
  RunGang(4, "", [](int rank, Relay relay) {
    if (rank == 1) return;  // its parent is rank 0 and its child is rank 3
    const auto broadcast_forever = [&] {
      while (true) Broadcast(relay, 0);
    };
    EXPECT_THROW(broadcast_forever(), c10::DistNetworkError);  // on rank 2, after rank 0 has left
  });
}

// Connects to rank 0. Its entry in the store is a password of 16 bytes and the address of its
// socket.
UniqueFd ConnectToRankZero(c10d::Store& store) {
  const std::vector<std::uint8_t> entry = store.get("relay/0");
  UniqueFd visitor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* name = reinterpret_cast<const sockaddr*>(entry.data() + 16);
  EXPECT_EQ(connect(visitor.get(), name, sizeof(sockaddr_in)), 0);
  return visitor;
}

TEST(RelayTest, RejectsConnectionsWithoutThePassword) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::jthread rank_zero([&] {
    Relay relay(*store, 0, 2, "127.0.0.1");
    Broadcast(relay, 7);
  });
  const UniqueFd guesses = ConnectToRankZero(*store);
  EXPECT_EQ(send(guesses.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
  EXPECT_TRUE(ConnectToRankZero(*store).valid());  // connects and disconnects
  Relay relay(*store, 1, 2, "127.0.0.1");
  EXPECT_EQ(Broadcast(relay, -1), 7);
}

TEST(RelayTest, AParentThatEndedBeforeTheConnectionIsALostPeer) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  UniqueFd unused_socket(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(name);
  ASSERT_EQ(bind(unused_socket.get(), reinterpret_cast<sockaddr*>(&name), size), 0);
  ASSERT_EQ(getsockname(unused_socket.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
  std::vector<std::uint8_t> entry(16);  // nobody listens at this address
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&name);
  entry.insert(entry.end(), bytes, bytes + size);
  store->set("relay/0", entry);
  EXPECT_THROW(Relay(*store, 1, 2, "127.0.0.1"), c10::DistNetworkError);
}

TEST(RelayTest, RejectsAnInvalidAddress) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  EXPECT_THROW(Relay(*store, 0, 2, "nowhere"), Error);
}

}  // namespace
}  // namespace attune::inline sdk::trainable
