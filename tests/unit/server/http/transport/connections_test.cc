#include "server/http/transport/connections.h"

#include <poll.h>

#include <array>
#include <future>
#include <latch>
#include <semaphore>
#include <stop_token>

#include "server/network/tcp_listener.h"
#include "tests/unit/server/http/http_fixture.h"
#include "tests/unit/server/http/raw_client.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kLivez = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr std::string_view kVersion = "GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr std::string_view kLiveAnswer = "{\"status\":\"live\"}";
constexpr std::string_view kVersionAnswer = "{\"version\":\"0.1.0\",\"api\":\"v1\",";
constexpr std::string_view kTokenHeader = "Authorization: Bearer 0123456789abcdef\r\n";

std::string Request(std::string_view line, std::string_view headers = "") {
  return std::string(line) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(kTokenHeader) +
         std::string(headers) + "\r\n";
}

class ConnectionsTest : public HttpFixture {
 protected:
  explicit ConnectionsTest(HttpLimits limits = {}) : HttpFixture(limits) {}

  RawClient Connect(int receive_bytes = 0) const {
    return RawClient(server_->port(), receive_bytes);
  }

  // Opens connections one after the other. Each has sent `sent` and received `got`.
  std::vector<RawClient> ConnectMany(int count, std::string_view sent, std::string_view got) const {
    std::vector<RawClient> clients;
    for (int i = 0; i < count; ++i) {
      clients.push_back(Connect());
      clients.back().Send(sent);
      if (got.empty()) continue;
      EXPECT_THAT(clients.back().ReadUntil(got), HasSubstr(std::string(got)));
    }
    return clients;
  }

  void ExpectAlive() const {
    RawClient client = Connect();
    client.Send(kLivez);
    EXPECT_THAT(client.ReadUntil(kLiveAnswer), StartsWith("HTTP/1.1 200 OK\r\n"));
  }

  std::string Executors() const {
    RawClient client = Connect();
    client.Send(Request("GET /api/v1/executors", "Connection: close\r\n"));
    return client.ReadToEnd();
  }
};

// ---- Use of workers ------------------------------------------------------------------------

TEST_F(ConnectionsTest, IdleConnectionsUseNoWorker) {
  const std::string version = Request("GET /version");
  auto idle = ConnectMany(300, version, kVersionAnswer);
  ExpectAlive();
  EXPECT_THAT(Executors(), HasSubstr("HTTP/1.1 200"));
  for (RawClient& client : idle) client.Send(version);
  for (RawClient& client : idle) EXPECT_THAT(client.ReadUntil(kVersionAnswer), HasSubstr("200 OK"));
}

TEST_F(ConnectionsTest, IncompleteRequestsUseNoWorker) {
  const auto heads = ConnectMany(100, "GET /version HTTP/1.1\r\nHost: loc", "");
  const auto bodies =
      ConnectMany(100, Request("POST /api/v1/sweeps:validate", "Content-Length: 9\r\n") + "na", "");
  ExpectAlive();
  EXPECT_THAT(Executors(), HasSubstr("HTTP/1.1 200"));
}

TEST_F(ConnectionsTest, AClientThatSendsByteAfterByteIsAnswered) {
  RawClient client = Connect();
  for (const char byte : kVersion) client.Send({&byte, 1});
  EXPECT_THAT(client.ReadUntil(kVersionAnswer), HasSubstr("200 OK"));
}

TEST_F(ConnectionsTest, RequestsWithBodiesMayFollowEachOther) {
  const std::string body = "name: 3\n";
  const std::string post = Request("POST /api/v1/sweeps:validate", "Content-Length: 8\r\n") + body;
  RawClient client = Connect();
  client.Send(post + std::string(kLivez) + post +
              "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::string answers = client.ReadToEnd();
  const size_t first = answers.find("HTTP/1.1 422");
  const size_t second = answers.find("HTTP/1.1 200", first);
  const size_t third = answers.find("HTTP/1.1 422", second);
  EXPECT_NE(answers.find("HTTP/1.1 200", third), std::string::npos) << answers;
}

TEST_F(ConnectionsTest, AHalfClosedConnectionGetsItsAnswer) {
  RawClient client = Connect();
  client.Send(kVersion);
  client.HalfClose();
  EXPECT_THAT(client.ReadToEnd(), HasSubstr(std::string(kVersionAnswer)));
}

TEST_F(ConnectionsTest, AClientThatLeavesDuringARequestIsForgotten) {
  for (int i = 0; i < 50; ++i) {
    RawClient client = Connect();
    client.Send(i % 2 == 0 ? kVersion.substr(0, 20) : kVersion);
  }
  ExpectAlive();
}

TEST_F(ConnectionsTest, SendsContinueOnlyForAnAdmittedBody) {
  const std::string length = "Content-Length: 8\r\nExpect: 100-continue\r\n";
  RawClient client = Connect();
  client.Send(Request("POST /api/v1/sweeps:validate", length));
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("name: 3\n");
  EXPECT_THAT(client.ReadUntil("}"), StartsWith("HTTP/1.1 422"));

  RawClient stranger = Connect();
  stranger.Send("POST /api/v1/sweeps HTTP/1.1\r\nHost: localhost\r\n" + length + "\r\n");
  const std::string refusal = stranger.ReadToEnd();
  EXPECT_THAT(refusal, StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(refusal, Not(HasSubstr("100 Continue")));
}

TEST_F(ConnectionsTest, ABodyIsReadOnlyWithAToken) {
  for (const std::string path :
       {"/", "/livez", "/nothing", "/%61pi/v1/sweeps", "/api%2Fv1/sweeps"}) {
    RawClient stranger = Connect();
    stranger.Send("POST " + path +
                  " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab");
    const std::string refusal = stranger.ReadToEnd();
    EXPECT_THAT(refusal, StartsWith("HTTP/1.1 4")) << path;
    EXPECT_THAT(refusal, HasSubstr("Connection: close\r\n")) << path;
  }
}

TEST_F(ConnectionsTest, ABodyWithTwoLengthsIsRefused) {
  RawClient client = Connect();
  client.Send(
      Request("POST /api/v1/sweeps", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") +
      "0\r\n\r\nGET /livez HTTP/1.1\r\n\r\n");
  const std::string answer = client.ReadToEnd();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(answer, Not(HasSubstr("HTTP/1.1 200")));
}

TEST_F(ConnectionsTest, ALongAddressIsReadLikeAShortOne) {
  RawClient client = Connect();
  client.Send(Request("POST /" + std::string(8'000, 'a'), "Connection: close\r\n"));
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 405"));
}

TEST_F(ConnectionsTest, PartsOfAnAnswerAreNotSent) {
  RawClient client = Connect();
  client.Send(
      "GET / HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-1,0-1,0-1\r\n"
      "Connection: close\r\n\r\n");
  const std::string answer = client.ReadToEnd();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("<!doctype html>the page"));
}

TEST_F(ConnectionsTest, AStopDoesNotWaitForFiveHundredConnections) {
  const auto idle = ConnectMany(250, Request("GET /version"), kVersionAnswer);
  const auto heads = ConnectMany(50, "GET /ver", "");
  const auto streams = ConnectMany(200, Request("GET /api/v1/events"), "retry: 2000");
  const auto begun = std::chrono::steady_clock::now();
  backend_.Stop();
  server_->Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(2));
}

// ---- Limits in number ----------------------------------------------------------------------

class NarrowTest : public ConnectionsTest {
 protected:
  NarrowTest()
      : ConnectionsTest({.connections = 4,
                         .unauthenticated = 4,
                         .streams = 3,
                         .workers = 1,
                         .queued = 1,
                         .unread_body_bytes = 2'000'000}) {}
};

TEST_F(NarrowTest, AnAuthenticatedConnectionBeyondTheLimitIsRefused) {
  const std::string authenticated = Request("GET /version");
  const auto taken = ConnectMany(4, authenticated, kVersionAnswer);
  RawClient late = Connect();
  late.Send(authenticated);
  const std::string refusal = late.ReadToEnd();
  EXPECT_THAT(refusal, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(refusal, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_THAT(refusal, HasSubstr("4 connections"));
  ExpectAlive();
  RawClient health = Connect();
  health.Send(Request("GET /livez"));
  EXPECT_THAT(health.ReadUntil(kLiveAnswer), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(NarrowTest, AClosedConnectionFreesItsSlot) {
  { const auto taken = ConnectMany(4, Request("GET /version"), kVersionAnswer); }
  // The server notices their end before these new connections.
  ConnectMany(4, Request("GET /version"), kVersionAnswer);
}

TEST_F(NarrowTest, ConnectionsWithoutATokenDoNotKeepOthersOut) {
  const auto strangers = ConnectMany(100, kVersion, kVersionAnswer);
  ConnectMany(4, Request("GET /version"), kVersionAnswer);
}

TEST_F(NarrowTest, ANewConnectionClosesAnOlderOneWithoutAToken) {
  auto kept = ConnectMany(1, Request("GET /version"), kVersionAnswer);
  auto strangers = ConnectMany(5, kVersion, kVersionAnswer);
  // The server closes one of the two oldest connections, which ends the read.
  std::vector<std::future<std::string>> ends;
  for (int i = 0; i < 2; ++i) {
    strangers[i].Send(kVersion);
    ends.push_back(std::async([&strangers, i] { return strangers[i].ReadUntil(kVersionAnswer); }));
  }
  const size_t answered = (ends[0].get().empty() ? 0 : 1) + (ends[1].get().empty() ? 0 : 1);
  EXPECT_EQ(answered, 1u);
  kept.front().Send(Request("GET /version"));
  EXPECT_THAT(kept.front().ReadUntil(kVersionAnswer), HasSubstr("200 OK"));
}

TEST_F(NarrowTest, SilentConnectionsDoNotBlockHealthChecks) {
  const auto silent = ConnectMany(20, "", "");
  ExpectAlive();
  ExpectAlive();
}

TEST_F(NarrowTest, ARequestBeyondTheQueueIsRefused) {
  std::latch answering(1);
  std::promise<void> release;
  backend_.before_executors = [&, held = release.get_future().share()] {
    if (!answering.try_wait()) answering.count_down();
    held.wait();
  };
  auto first = ConnectMany(1, Request("GET /api/v1/executors"), "");
  answering.wait();
  auto second = ConnectMany(1, Request("GET /api/v1/executors"), "");
  // One thread reads the connections, so the queue takes the requests in order of arrival. The next
  // request exceeds the limit.
  RawClient third = Connect();
  std::string refusal;
  third.Send(kVersion);
  refusal = third.ReadToEnd();
  EXPECT_THAT(refusal, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(refusal, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_THAT(refusal, HasSubstr("1 request"));
  ExpectAlive();
  release.set_value();
  EXPECT_THAT(first.front().ReadUntil("}]}"), HasSubstr("200 OK"));
  EXPECT_THAT(second.front().ReadUntil("}]}"), HasSubstr("200 OK"));
}

TEST_F(NarrowTest, TooManyBodiesAreRefused) {
  const std::string post =
      Request("POST /api/v1/sweeps:validate", "Content-Length: 1000000\r\n") + "n";
  const auto two = ConnectMany(2, post, "");
  RawClient third = Connect();
  third.Send(post);
  const std::string refusal = third.ReadToEnd();
  EXPECT_THAT(refusal, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(refusal, HasSubstr("bodies"));
}

TEST_F(NarrowTest, AStreamBeyondTheLimitIsRefusedAndStreamsUseNoWorker) {
  auto streams = ConnectMany(3, Request("GET /api/v1/events"), "retry: 2000");
  RawClient fourth = Connect();
  fourth.Send(Request("GET /api/v1/events"));
  const std::string refusal = fourth.ReadUntil("3 streams");
  EXPECT_THAT(refusal, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(refusal, HasSubstr("Retry-After: 10\r\n"));
  EXPECT_THAT(refusal, HasSubstr("3 streams"));
  fourth.Send(Request("GET /api/v1/executors"));  // the only worker is free
  EXPECT_THAT(fourth.ReadUntil("]"), HasSubstr("200 OK"));
  backend_.AwaitWaiter();
  backend_.Add(SweepEnded{SweepId(1), SweepState::kStopped, ""});
  for (RawClient& stream : streams)
    EXPECT_THAT(stream.ReadUntil("stopped"), HasSubstr("id: 39\nevent: sweep_changed\n"));
}

TEST_F(NarrowTest, AClosedStreamFreesItsSlot) {
  for (int i = 0; i < 10; ++i) {
    auto stream = ConnectMany(1, Request("GET /api/v1/events"), "retry: 2000");
    stream.front().HalfClose();
    stream.front().ReadToEnd();
  }
}

// ---- Limits in time ------------------------------------------------------------------------

class HastyTest : public ConnectionsTest {
 protected:
  using Time = std::chrono::milliseconds;
  HastyTest()
      : ConnectionsTest({.idle = Time(50),
                         .head = Time(50),
                         .body = Time(50),
                         .sending = Time(50),
                         .slowest_bytes_per_second = 1 << 30}) {}
};

TEST_F(HastyTest, AnIncompleteHeadTimesOut) {
  RawClient client = Connect();
  client.Send(kVersion.substr(0, 20));
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 408"));
}

TEST_F(HastyTest, AnIncompleteBodyTimesOut) {
  RawClient client = Connect();
  client.Send(Request("POST /api/v1/sweeps", "Content-Length: 9\r\n") + "n");
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 408"));
}

TEST_F(HastyTest, AConnectionWithoutARequestTimesOut) {
  EXPECT_EQ(Connect().ReadToEnd(), "");
  RawClient client = Connect();
  client.Send(kVersion);
  EXPECT_THAT(client.ReadToEnd(), HasSubstr(std::string(kVersionAnswer)));
}

TEST_F(HastyTest, AClientThatTakesNoAnswersIsDisconnected) {
  RawClient client = Connect(4096);
  std::string requests;
  for (int i = 0; i < 1000; ++i) requests += "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  // Its answers fill the system's buffers. Then the server stops reading its requests.
  ssize_t pushed = 0;
  while (pushed >= 0 || errno == EAGAIN) pushed = client.Push(requests);
  ExpectAlive();
}

// ---- Heavy requests ------------------------------------------------------------------------

class NoFeed final : public EventFeed {
 public:
  EventSeq WaitForEvents(EventSeq seq, int) override { return seq; }
  std::optional<Page> ReadAfter(EventSeq, std::optional<SweepId>) override { return std::nullopt; }
};

// A server whose requests for /heavy last until the client disconnects or the server stops.
class HeavyTest : public ::testing::Test {
 protected:
  HeavyTest() {
    auto listening = ListenTcp("127.0.0.1", 0, "--port");
    EXPECT_TRUE(listening.ok());
    port_ = listening->port;
    std::vector<Connections::Listener> listeners;
    listeners.push_back({.socket = std::move(listening->socket), .certificate = {}});
    connections_ = std::make_unique<Connections>(
        Connections::Parts{.exchange = &exchange_,
                           .shows_token = [](const server::Request&) { return true; },
                           .admits = [](const server::Request&) { return true; },
                           .feed = &feed_,
                           .limits = {.heavy_workers = 1, .heavy_queued = 2}},
        std::move(listeners));
  }

  RawClient Ask(std::string_view path) const {
    RawClient client(port_);
    client.Send(Request("GET " + std::string(path)));
    return client;
  }

  Response Answer(const server::Request& request) {
    if (request.path != "/heavy") return {.content_type = "text/plain", .body = "light"};
    if (!request.heavy) return {.heavy = true};
    begun_.release();
    std::binary_semaphore left(0);
    const std::stop_callback stopped(request.left, [&] { left.release(); });
    left.acquire();
    ended_.release();
    return {.status = 503, .content_type = "text/plain", .body = "given up"};
  }

  std::counting_semaphore<> begun_{0};
  std::counting_semaphore<> ended_{0};
  NoFeed feed_;
  Exchange exchange_{[this](const server::Request& request) { return Answer(request); }};
  int port_ = 0;
  std::unique_ptr<Connections> connections_;
};

TEST_F(HeavyTest, EndsWhenTheClientLeaves) {
  {
    const RawClient client = Ask("/heavy");
    begun_.acquire();
  }
  ended_.acquire();
}

TEST_F(HeavyTest, DoesNotHoldUpLightRequests) {
  const RawClient running = Ask("/heavy");
  begun_.acquire();
  const RawClient waiting = Ask("/heavy");
  RawClient light = Ask("/light");
  EXPECT_THAT(light.ReadUntil("light"), StartsWith("HTTP/1.1 200"));
}

TEST_F(HeavyTest, IsRefusedIfTooManyWait) {
  const RawClient running = Ask("/heavy");
  begun_.acquire();
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(Ask("/heavy"));
  // Which of the three is refused depends on the order in which the workers take them.
  std::array<pollfd, 3> polled{};
  for (size_t i = 0; i < 3; ++i) polled[i] = {.fd = clients[i].descriptor(), .events = POLLIN};
  ASSERT_EQ(::poll(polled.data(), 3, -1), 1);
  for (size_t i = 0; i < 3; ++i) {
    if (polled[i].revents == 0) continue;
    EXPECT_THAT(clients[i].ReadToEnd(), HasSubstr("urn:attune:problem:connection-limit"));
  }
}

TEST_F(HeavyTest, EndsWhenTheServerStops) {
  const RawClient running = Ask("/heavy");
  begun_.acquire();
  const RawClient waiting = Ask("/heavy");
  connections_->Stop();
  ended_.acquire();
}

}  // namespace
}  // namespace attune::server
