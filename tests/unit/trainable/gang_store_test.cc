#include "trainable/distributed/gang_store.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <thread>

#include "attune/error.h"
#include "system/unique_fd.h"
#include "trainable/distributed/process_groups.h"
#include "trainable/distributed/store_server.h"

namespace attune::inline sdk::trainable {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;
using Keys = std::vector<std::string>;
using Kind = StoreMessage::Kind;

constexpr auto kPatience =
    60s;  // long enough for a busy machine; only a failing test waits this long

Bytes ToBytesOf(const std::string& text) { return {text.begin(), text.end()}; }

class GangStoreTest : public ::testing::Test {
 protected:
  c10::intrusive_ptr<GangStore> Connect(std::chrono::milliseconds timeout = kPatience) {
    return c10::make_intrusive<GangStore>(StoreAddress("127.0.0.1", server_->port()), timeout);
  }

  // When this returns, the server has processed all earlier messages, because its thread serves all
  // connections before it serves one again.
  void LetServerSeeAll() {
    const auto store = Connect();
    store->check({});
    store->check({});
  }

  std::unique_ptr<StoreServer> server_ = std::make_unique<StoreServer>("127.0.0.1");
};

// A connection on which the test sends raw bytes.
class RawClient {
 public:
  explicit RawClient(const StoreServer& server)
      : RawClient(server, UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))) {}
  RawClient(const StoreServer& server, UniqueFd socket) : socket_(std::move(socket)) {
    const sockaddr_in address = StoreAddress("127.0.0.1", server.port());
    if (connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      ThrowErrno("connect");
    }
  }

  // The server may have closed the connection in the meantime.
  void Send(std::string_view bytes) {
    send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  bool HasAnswer() const {
    pollfd polled{socket_.get(), POLLIN, 0};
    return poll(&polled, 1, 0) > 0;
  }

  // Returns nullopt if the connection ends first.
  std::optional<StoreMessage> Receive() {
    while (true) {
      if (auto message = in_.Next()) return message;
      pollfd polled{socket_.get(), POLLIN, 0};
      if (poll(&polled, 1, std::chrono::milliseconds(kPatience).count()) == 0) {
        throw Error("the server neither answers nor ends the connection");
      }
      char bytes[4096];
      const ssize_t count = recv(socket_.get(), bytes, sizeof(bytes), 0);
      if (count <= 0) return std::nullopt;
      in_.Append({bytes, static_cast<std::size_t>(count)});
    }
  }

 private:
  UniqueFd socket_;
  StoreMessageReader in_;
};

TEST_F(GangStoreTest, OneClientGetsWhatAnotherSets) {
  const auto one = Connect(), other = Connect();
  const Bytes value{0, 255, 10, 0};
  one->set("key", value);
  EXPECT_EQ(other->get("key"), value);
  one->set("key", Bytes{});
  EXPECT_EQ(other->get("key"), Bytes{});
  EXPECT_TRUE(other->hasExtendedApi());
}

TEST_F(GangStoreTest, CountsAndChecksKeys) {
  const auto store = Connect();
  EXPECT_EQ(store->getNumKeys(), 0);
  EXPECT_FALSE(store->check({"a"}));
  store->set("a", "1");
  store->set("b", "2");
  EXPECT_EQ(store->getNumKeys(), 2);
  EXPECT_TRUE(store->check({"a", "b"}));
  EXPECT_FALSE(store->check({"a", "c"}));
  EXPECT_TRUE(store->deleteKey("a"));
  EXPECT_FALSE(store->deleteKey("a"));
  EXPECT_FALSE(store->check({"a"}));
  EXPECT_EQ(store->getNumKeys(), 1);
}

TEST_F(GangStoreTest, AddsToADecimalNumber) {
  const auto store = Connect();
  EXPECT_EQ(store->add("n", 5), 5);
  EXPECT_EQ(store->add("n", -7), -2);
  EXPECT_EQ(store->get_to_str("n"), "-2");
  store->set("n", "40");
  EXPECT_EQ(store->add("n", 2), 42);

  store->set("text", "40 ");
  EXPECT_THROW(store->add("text", 1), Error);
  store->set("full", std::to_string(std::numeric_limits<std::int64_t>::max()));
  EXPECT_THROW(store->add("full", 1), Error);
  EXPECT_EQ(store->add("n", 0), 42) << "a refusal is not the end";
}

TEST_F(GangStoreTest, AppendsToAValue) {
  const auto store = Connect();
  store->append("log", ToBytesOf("one"));
  store->append("log", ToBytesOf(" two"));
  EXPECT_EQ(store->get_to_str("log"), "one two");
}

TEST_F(GangStoreTest, ComparesAndSets) {
  const auto store = Connect();
  EXPECT_EQ(store->compareSet("k", "old", "new"), "old") << "nothing is there";
  EXPECT_FALSE(store->check({"k"}));
  EXPECT_EQ(store->compareSet("k", "", "first"), "first");
  EXPECT_EQ(store->compareSet("k", "other", "second"), "first");
  EXPECT_EQ(store->compareSet("k", "first", "second"), "second");
  EXPECT_EQ(store->get_to_str("k"), "second");
}

TEST_F(GangStoreTest, SetsAndGetsSeveralInOrder) {
  const auto store = Connect();
  store->multiSet({"b", "a"}, {ToBytesOf("2"), ToBytesOf("1")});
  EXPECT_THAT(store->multiGet({"a", "b", "a"}),
              ElementsAre(ToBytesOf("1"), ToBytesOf("2"), ToBytesOf("1")));
  EXPECT_THROW(store->multiSet({"a", "b"}, {ToBytesOf("1")}), Error);
  EXPECT_TRUE(store->multiGet({}).empty());
  store->wait(Keys{});
}

TEST_F(GangStoreTest, ServesPrefixesAndClones) {
  const auto store = Connect();
  const auto prefix = c10::make_intrusive<c10d::PrefixStore>("group", store->clone());
  prefix->set("0", "address");
  EXPECT_EQ(store->get_to_str("group/0"), "address");
  EXPECT_TRUE(prefix->hasExtendedApi());
  EXPECT_EQ(prefix->getTimeout(), kPatience);
}

TEST_F(GangStoreTest, AWaitEndsWithTheLastOfItsKeys) {
  RawClient waiting(*server_);
  waiting.Send(ToBytes({.number = 7, .kind = Kind::kGet, .keys = {"a", "b", "c"}}));
  LetServerSeeAll();
  const auto one = Connect(), other = Connect();
  one->set("b", "2");
  other->append("c", ToBytesOf("3"));
  LetServerSeeAll();
  EXPECT_FALSE(waiting.HasAnswer());
  one->add("a", 1);
  const auto answer = waiting.Receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->number, 7);
  EXPECT_THAT(answer->values, ElementsAre("1", "2", "3"));
}

TEST_F(GangStoreTest, AGetWaitsAgainForADeletedKeyAndAWaitDoesNot) {
  RawClient gets(*server_), waits(*server_);
  gets.Send(ToBytes({.kind = Kind::kGet, .keys = {"a", "b"}}));
  waits.Send(ToBytes({.kind = Kind::kWait, .keys = {"a", "b"}}));
  LetServerSeeAll();
  const auto store = Connect();
  store->set("a", "1");
  store->deleteKey("a");
  store->set("b", "2");
  EXPECT_TRUE(waits.Receive());
  LetServerSeeAll();
  EXPECT_FALSE(gets.HasAnswer());
  store->set("a", "3");
  EXPECT_THAT(gets.Receive()->values, ElementsAre("3", "2"));
}

TEST_F(GangStoreTest, ATimeoutIsAStoreErrorAndKeepsTheConnection) {
  const auto store = Connect(), other = Connect();
  for (int i = 0; i < 20; ++i) {
    const std::string key = "late/" + std::to_string(i);
    std::thread setting([&] { other->set(key, "late"); });
    try {
      store->wait({key}, 1ms);  // may time out or succeed
    } catch (const c10::DistStoreError&) {
    }
    store->set("own", std::to_string(i));
    EXPECT_EQ(store->get_to_str("own"), std::to_string(i));
    setting.join();
  }
  try {
    store->wait({"never", "nor this"}, 1ms);
    FAIL() << "it cannot have been there";
  } catch (const c10::DistStoreError& error) {
    EXPECT_THAT(error.msg(), AllOf(HasSubstr(" 1 ms "), HasSubstr("never and 1 more")));
  }
  store->setTimeout(1ms);
  EXPECT_THROW(store->get("never"), c10::DistStoreError);
  EXPECT_THROW(store->wait({"never"}), c10::DistStoreError);
}

TEST_F(GangStoreTest, AWaitingClientLosesItsPeerWithTheServer) {
  const auto store = Connect();
  std::exception_ptr error;
  std::thread waiting([&] {
    try {
      store->wait({"never"}, c10d::Store::kNoTimeout);
    } catch (...) {
      error = std::current_exception();
    }
  });
  RawClient raw(*server_);
  raw.Send(ToBytes({.kind = Kind::kWait, .keys = {"never"}}));
  LetServerSeeAll();
  server_.reset();
  waiting.join();
  EXPECT_FALSE(raw.Receive());
  ASSERT_TRUE(error);
  EXPECT_TRUE(IsLostPeer(error));
  EXPECT_THROW(std::rethrow_exception(error), c10::DistNetworkError);
  EXPECT_THROW(store->set("a", "1"), c10::DistNetworkError);
  EXPECT_THROW(store->clone(), c10::DistNetworkError);
}

// The error of ProcessGroupGloo if a peer is killed while the ranks connect to each other.
TEST(LostPeer, IsRecognisedByGloosTextInAGenericError) {
  const auto thrown = [](const std::string& message) {
    return std::make_exception_ptr(c10::Error({__func__, __FILE__, __LINE__}, message));
  };
  EXPECT_TRUE(IsLostPeer(thrown(
      "Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:152] "
      "timed out connecting: SO_ERROR: Connection refused, remote=[127.0.0.1]:12206$0")));
  EXPECT_FALSE(IsLostPeer(thrown("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)")));
}

TEST_F(GangStoreTest, KeysValuesAndMessagesHaveLimits) {
  const auto store = Connect();
  const std::string key(kStoreKeyBytesMax, 'k');
  const Bytes value(kStoreValueBytesMax, 1);
  store->set(key, value);
  EXPECT_EQ(store->get(key), value);
  EXPECT_THROW(store->set(key + "k", Bytes{}), Error);
  EXPECT_THROW(store->set("k", Bytes(kStoreValueBytesMax + 1)), Error);
  EXPECT_THROW(store->append(key, Bytes{1}), Error);
  EXPECT_THROW(store->multiGet(Keys(kStoreMessageBytesMax / kStoreValueBytesMax, key)), Error);
  EXPECT_THROW(store->set("k", Bytes(kStoreMessageBytesMax)), Error);
  EXPECT_EQ(store->getNumKeys(), 1) << "a refusal is not the end";
}

TEST_F(GangStoreTest, ServesSixteenClientsAtOnce) {
  constexpr int kClients = 16, kRounds = 50;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kClients; ++rank) {
    threads.emplace_back([&, rank] {
      const auto store = Connect();
      for (int round = 0; round < kRounds; ++round) {
        Keys keys;
        for (int peer = 0; peer < kClients; ++peer) {
          keys.push_back(std::to_string(round) + "/" + std::to_string(peer));
        }
        store->set(keys[rank], std::to_string(rank));
        store->wait(keys);
        const auto values = store->multiGet(keys);
        for (int peer = 0; peer < kClients; ++peer) {
          EXPECT_EQ(values[peer], ToBytesOf(std::to_string(peer)));
        }
        store->add("sum", rank);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Connect()->add("sum", 0), kRounds * kClients * (kClients - 1) / 2);
}

TEST_F(GangStoreTest, OneProcessServesTheStoresOfSeveralGangs) {
  const auto first = Connect();
  first->set("a", "first");
  server_ = std::make_unique<StoreServer>("127.0.0.1");
  const auto second = Connect();
  EXPECT_FALSE(second->check({"a"}));
  EXPECT_THROW(first->check({"a"}), c10::DistNetworkError);
}

TEST_F(GangStoreTest, InvalidBytesCloseTheirConnectionOnly) {
  const auto store = Connect();
  const std::string header = "ATS1";
  const std::string whole = ToBytes({.kind = Kind::kCheck, .keys = {"a"}});
  std::string huge_list = whole;
  huge_list.replace(whole.find('a') - 8, 8, 8, '\xff');
  for (const std::string& rubbish : {
           std::string("GET / HTTP/1.1\r\n\r\n"),
           std::string("AT\r\n"),
           header + "\xff\xff\xff\xff",
           header + std::string("\x01\x00\x00\x01", 4),  // 16 MiB and one byte
           header + std::string(4, '\0'),
           huge_list,
           ToBytes({.kind = Kind::kDone}),
           ToBytes({.kind = static_cast<Kind>(200)}),
           ToBytes({.kind = Kind::kSet, .keys = {"a", "b"}, .values = {"1"}}),
           ToBytes({.kind = Kind::kCompareSet, .keys = {"a"}, .values = {"1"}}),
           ToBytes({.kind = Kind::kAdd}),
       }) {
    RawClient client(*server_);
    client.Send(rubbish);
    EXPECT_FALSE(client.Receive()) << rubbish;
  }
  RawClient(*server_).Send(whole.substr(0, whole.size() - 1));
  LetServerSeeAll();
  EXPECT_EQ(store->getNumKeys(), 0);

  RawClient slow(*server_);
  for (const char byte : whole) slow.Send({&byte, 1});
  EXPECT_EQ(slow.Receive()->kind, Kind::kDone) << "bytes that come one by one are a message";
}

TEST_F(GangStoreTest, SurvivesRandomBytes) {
  const char* given = std::getenv("ATTUNE_SEED");
  const unsigned seed = given != nullptr ? std::atoi(given) : std::random_device()();
  SCOPED_TRACE("ATTUNE_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](std::size_t end) { return random() % end; };
  for (int i = 0; i < 500; ++i) {
    std::string bytes;
    for (int messages = 0; messages < 5; ++messages) {
      bytes += ToBytes({.number = static_cast<std::uint32_t>(random()),
                        .kind = static_cast<Kind>(below(12)),
                        .amount = static_cast<std::int64_t>(random()),
                        .keys = Keys(below(3), std::string(below(3), 'k')),
                        .values = Keys(below(3), std::string(below(3), '1'))});
    }
    for (auto changes = below(6); changes > 0; --changes) {
      bytes[below(bytes.size())] = static_cast<char>(random());
    }
    RawClient client(*server_);
    client.Send(std::string_view(bytes).substr(0, 1 + below(bytes.size())));
  }
  const auto store = Connect();
  store->set("still", "there");
  EXPECT_EQ(store->get_to_str("still"), "there");
}

TEST_F(GangStoreTest, AClientThatDoesNotReadDoesNotDelayOthers) {
  const auto store = Connect();
  store->set("large", Bytes(kStoreValueBytesMax));
  RawClient silent(*server_);
  std::string requests;
  for (int i = 0; i < 1000; ++i) requests += ToBytes({.kind = Kind::kGet, .keys = {"large"}});
  silent.Send(requests);
  LetServerSeeAll();
  EXPECT_EQ(store->getNumKeys(), 1);
  EXPECT_EQ(silent.Receive()->values[0].size(), kStoreValueBytesMax);
  EXPECT_EQ(silent.Receive()->values[0].size(), kStoreValueBytesMax);
}

TEST_F(GangStoreTest, WithoutDescriptorsTheNextClientWaitsForAnotherToLeave) {
  auto first = Connect();
  first->set("a", "1");
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const UniqueFd next_free(dup(socket.get()));
  rlimit none_left = before;
  none_left.rlim_cur = next_free.get() + 1;  // all lower descriptors are in use
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  RawClient second(*server_, std::move(socket));
  second.Send(ToBytes({.kind = Kind::kCount}));
  EXPECT_TRUE(first->check({"a"}));
  EXPECT_TRUE(first->check({"a"}));
  EXPECT_FALSE(second.HasAnswer());
  first.reset();
  EXPECT_EQ(second.Receive()->amount, 1);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(GangStore, AnUnreachableHostIsALostPeer) {
  const sockaddr_in nobody = StoreAddress("255.255.255.255", 1);
  EXPECT_THAT([&] { GangStore(nobody, 1ms); },
              ::testing::ThrowsMessage<c10::DistNetworkError>(HasSubstr("unreachable")));
}

TEST(StoreAddress, AcceptsAddressesAndNames) {
  EXPECT_EQ(StoreAddress("192.0.2.7", 1).sin_addr.s_addr, htonl(0xc0000207));
  EXPECT_EQ(StoreAddress("localhost", 29500).sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(StoreAddress("localhost", 29500).sin_port, htons(29500));
  EXPECT_THROW(StoreAddress("", 1), Error);
}

}  // namespace
}  // namespace attune::inline sdk::trainable
