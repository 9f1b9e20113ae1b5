#include "server/http/http_server.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/result.h"
#include "server/http/transport/gzip.h"
#include "tests/unit/server/http/http_fixture.h"
#include "tests/unit/server/http/raw_client.h"

namespace attune::server {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class HttpServerTest : public HttpFixture {
 protected:
  // Sends bytes unchanged and reads until the connection ends.
  std::string Exchange(const std::string& bytes) const {
    RawClient client(server_->port());
    client.Send(bytes);
    return client.ReadToEnd();
  }

  std::string CookieName() const { return "attune_session_" + std::to_string(server_->port()); }

  // NAME=SECRET of the cookie that a path of /login sets; empty if it sets none.
  std::string LogIn(const std::string& path) const {
    httplib::Client browser("127.0.0.1", server_->port());
    const auto answer = browser.Get(path);
    if (!answer || answer->status != 303) return "";
    EXPECT_EQ(answer->get_header_value("Location"), "/");
    const std::string cookie = answer->get_header_value("Set-Cookie");
    EXPECT_THAT(cookie, HasSubstr("; HttpOnly; SameSite=Strict"));
    return cookie.substr(0, cookie.find(';'));
  }

  int StatusWith(const httplib::Headers& headers, const std::string& path = "/api/v1/executors") {
    client_->set_default_headers({});
    const auto answer = client_->Get(path, headers);
    return answer ? answer->status : -1;
  }
};

TEST_F(HttpServerTest, TheApiRequiresTheToken) {
  const std::string token(kToken);
  EXPECT_EQ(StatusWith({{"Authorization", "Bearer " + token}}), 200);
  EXPECT_EQ(StatusWith({{"Authorization", "bearer " + token}}), 200);
  EXPECT_EQ(StatusWith({}), 401);
  EXPECT_EQ(StatusWith({{"Authorization", "Bearer "}}), 401);
  EXPECT_EQ(StatusWith({{"Authorization", "Bearer " + token + "0"}}), 401);
  EXPECT_EQ(StatusWith({{"Authorization", "Bearer " + token.substr(1)}}), 401);
  EXPECT_EQ(StatusWith({{"Authorization", "Basic " + token}}), 401);
  EXPECT_EQ(StatusWith({{"Cookie", "attune_token=" + token}}), 401);
  EXPECT_EQ(StatusWith({{"Cookie", CookieName() + "=" + token}}), 401);
  EXPECT_EQ(StatusWith({}, "/api/v1/nothing"), 401);
}

TEST_F(HttpServerTest, TokensNameActorsAndViewersOnlyRead) {
  const NamedTokens tokens(folder_.path());
  HttpServer::Options options = ServerOptions();
  options.named_tokens = &tokens;
  server_ = HttpServer::Start(options).value();
  client_ = NewClient();
  const auto as = [this](const std::string& secret) {
    auto client = std::make_unique<httplib::Client>("127.0.0.1", server_->port());
    client->set_default_headers({{"Authorization", "Bearer " + secret}});
    return client;
  };
  const auto ada = as(tokens.Create("ada", Role::kAdmin).value());
  const auto bob = as(tokens.Create("bob", Role::kViewer).value());
  EXPECT_EQ(bob->Get("/api/v1/sweeps/s1")->status, 200);
  EXPECT_EQ(bob->Head("/api/v1/sweeps/s1")->status, 200);
  const Json refused = Parsed(bob->Post("/api/v1/sweeps/s1:pause"), 403);
  EXPECT_THAT(refused.at("detail"), HasSubstr("bob"));
  Parsed(bob->Patch("/api/v1/sweeps/s1", "{}", "application/json"), 403);
  Parsed(bob->Delete("/api/v1/sweeps/s1"), 403);
  const std::string change = R"({"priority": 5})";
  backend_.Add(SweepCreated{.sweep = SweepId(2), .spec = SampleSpec()});
  const Json edited = Parsed(ada->Post("/api/v1/sweeps/s2:edit", change, "application/json"), 202);
  EXPECT_EQ(edited.at("edited").at("actor"), "ada");
  EXPECT_TRUE(tokens.Remove("ada").ok());
  Parsed(ada->Get("/api/v1/sweeps/s1"), 401);
}

TEST_F(HttpServerTest, AFailedReadOfTheTokensIsNotRemembered) {
  const NamedTokens maker(folder_.path());
  const std::string secret = maker.Create("ada", Role::kAdmin).value();
  const NamedTokens tokens(folder_.path());
  HttpServer::Options options = ServerOptions();
  options.named_tokens = &tokens;
  server_ = HttpServer::Start(options).value();
  client_ = NewClient();
  auto ada = std::make_unique<httplib::Client>("127.0.0.1", server_->port());
  ada->set_default_headers({{"Authorization", "Bearer " + secret}});
  std::filesystem::rename(folder_ / "tokens", folder_ / "away");
  std::ofstream(folder_ / "tokens") << "no folder";
  // An old timestamp, so that a successful read would be cached.
  std::filesystem::last_write_time(
      folder_ / "tokens", std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const auto refused = ada->Get("/api/v1/sweeps/s1");
  Parsed(refused, 503);
  EXPECT_EQ(refused->get_header_value("Retry-After"), "1");
  EXPECT_EQ(client_->Get("/api/v1/sweeps/s1")->status, 200);
  std::filesystem::remove(folder_ / "tokens");
  std::filesystem::rename(folder_ / "away", folder_ / "tokens");
  std::filesystem::last_write_time(
      folder_ / "tokens", std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(ada->Get("/api/v1/sweeps/s1")->status, 200);
}

TEST_F(HttpServerTest, ARefusedPostIsNotReadAndTheConnectionCloses) {
  client_->set_default_headers({});
  const auto answer = client_->Post("/api/v1/sweeps", "name: x", "application/yaml");
  Parsed(answer, 401);
  EXPECT_EQ(answer->get_header_value("Connection"), "close");
}

TEST_F(HttpServerTest, LoginSetsTheCookieOfASession) {
  const std::string cookie = LogIn("/login?token=" + std::string(kToken));
  EXPECT_THAT(cookie, StartsWith(CookieName() + "="));
  EXPECT_THAT(cookie, Not(HasSubstr(std::string(kToken))));
  EXPECT_EQ(StatusWith({{"Cookie", "theme=dark; " + cookie}}), 200);
  EXPECT_EQ(StatusWith({{"Cookie", cookie + "0"}}), 401);
  EXPECT_EQ(StatusWith({{"Cookie", "not_" + cookie}}), 401);
  client_->set_default_headers({});
  GetJson("/login?token=wrong", 401);
  GetJson("/login", 401);
}

TEST_F(HttpServerTest, ASessionSurvivesARestart) {
  const std::string cookie = LogIn("/login?token=" + std::string(kToken));
  const int port = server_->port();
  server_.reset();
  HttpServer::Options options = ServerOptions();
  options.port = port;
  server_ = HttpServer::Start(options).value();
  client_ = NewClient();
  EXPECT_EQ(StatusWith({{"Cookie", cookie}}), 200);
}

TEST_F(HttpServerTest, LoggingOutEndsASession) {
  const std::string cookie = LogIn("/login?token=" + std::string(kToken));
  const std::string another = LogIn("/login?token=" + std::string(kToken));
  httplib::Client browser("127.0.0.1", server_->port());
  const auto answer = browser.Post("/logout", {{"Cookie", cookie}}, "", "text/plain");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 204);
  EXPECT_THAT(answer->get_header_value("Set-Cookie"), HasSubstr("Max-Age=0"));
  EXPECT_EQ(StatusWith({{"Cookie", cookie}}), 401);
  EXPECT_EQ(StatusWith({{"Cookie", another}}), 200);
}

TEST_F(HttpServerTest, APageOfAnotherOriginCannotLogOut) {
  const std::string cookie = LogIn("/login?token=" + std::string(kToken));
  httplib::Client browser("127.0.0.1", server_->port());
  Parsed(browser.Post("/logout", {{"Cookie", cookie}, {"Origin", "http://evil.example"}}, "",
                      "text/plain"),
         403);
  EXPECT_EQ(StatusWith({{"Cookie", cookie}}), 200);
}

TEST_F(HttpServerTest, ACodeLogsInOneBrowserOnce) {
  const std::string path = "/login?code=" + sessions_.CreateCode().value();
  const std::string cookie = LogIn(path);
  EXPECT_EQ(StatusWith({{"Cookie", cookie}}), 200);
  EXPECT_EQ(LogIn(path), "");
  EXPECT_EQ(LogIn("/login?code="), "");
  EXPECT_EQ(LogIn("/login?code=..%2F..%2Ftoken"), "");
}

TEST_F(HttpServerTest, ACodeExpires) {
  const std::string path = "/login?code=" + sessions_.CreateCode().value();
  for (const auto& file : std::filesystem::directory_iterator(folder_ / "login-codes"))
    std::filesystem::last_write_time(
        file.path(), std::filesystem::file_time_type::clock::now() - std::chrono::minutes(11));
  EXPECT_EQ(LogIn(path), "");
}

TEST_F(HttpServerTest, ARevokedTokenEndsItsSessionsAndStreams) {
  const NamedTokens tokens(folder_.path());
  HttpServer::Options options = ServerOptions();
  options.named_tokens = &tokens;
  server_ = HttpServer::Start(options).value();
  client_ = NewClient();
  const std::string secret = tokens.Create("ada", Role::kViewer).value();
  const std::string cookie = LogIn("/login?token=" + secret);
  EXPECT_EQ(StatusWith({{"Cookie", cookie}}), 200);
  std::vector<RawClient> streams;
  for (const std::string& shown : {"Cookie: " + cookie, "Authorization: Bearer " + secret}) {
    streams.emplace_back(server_->port());
    streams.back().Send("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n" + shown + "\r\n\r\n");
    streams.back().ReadUntil("retry: 2000");
  }
  EXPECT_TRUE(tokens.Remove("ada").ok());
  for (RawClient& stream : streams) EXPECT_THAT(stream.ReadToEnd(), EndsWith("0\r\n\r\n"));
  EXPECT_EQ(StatusWith({{"Cookie", cookie}}), 401);
}

TEST_F(HttpServerTest, AnExecutorsTokenHasNoAccess) {
  const NamedTokens tokens(folder_.path());
  HttpServer::Options options = ServerOptions();
  options.named_tokens = &tokens;
  server_ = HttpServer::Start(options).value();
  client_ = NewClient();
  const std::string secret = tokens.Create("hosts", Role::kExecutor).value();
  EXPECT_EQ(StatusWith({{"Authorization", "Bearer " + secret}}), 403);
  EXPECT_EQ(StatusWith({{"Authorization", "Bearer " + secret}}, "/api/v1/events"), 403);
  EXPECT_EQ(LogIn("/login?token=" + secret), "");
}

TEST_F(HttpServerTest, TheSessionHasTheNameAndRoleOfItsToken) {
  const NamedTokens tokens(folder_.path());
  HttpServer::Options options = ServerOptions();
  options.named_tokens = &tokens;
  server_ = HttpServer::Start(options).value();
  client_ = NewClient();
  const auto session_of = [&](const std::string& secret) {
    client_->set_default_headers({{"Authorization", "Bearer " + secret}});
    return Json::parse(client_->Get("/api/v1/session")->body);
  };
  EXPECT_EQ(session_of(std::string(kToken)), Json({{"name", "admin"}, {"role", "admin"}}));
  EXPECT_EQ(session_of(tokens.Create("ada", Role::kAdmin).value()),
            Json({{"name", "ada"}, {"role", "admin"}}));
  EXPECT_EQ(session_of(tokens.Create("eve", Role::kViewer).value()),
            Json({{"name", "eve"}, {"role", "viewer"}}));
}

TEST_F(HttpServerTest, OtherHostsAndOriginsAreRefused) {
  const std::string bearer = "Bearer " + std::string(kToken);
  const auto with = [&](const std::string& host, const std::string& origin) {
    httplib::Headers headers = {{"Authorization", bearer}, {"Host", host}};
    if (!origin.empty()) headers.emplace("Origin", origin);
    return StatusWith(headers);
  };
  EXPECT_EQ(with("localhost:7070", ""), 200);
  EXPECT_EQ(with("LOCALHOST", ""), 200);
  EXPECT_EQ(with("[::1]:7070", ""), 200);
  EXPECT_EQ(with("127.0.0.1:1", "http://127.0.0.1:1"), 200);
  EXPECT_EQ(with("evil.example", ""), 403);
  EXPECT_EQ(with("127.0.0.1.evil.example:7070", ""), 403);
  EXPECT_EQ(with("10.0.0.1:7070", ""), 403);
  EXPECT_EQ(with("localhost:7070", "http://evil.example"), 403);
  EXPECT_EQ(with("localhost:7070", "http://localhost:8080"), 403);
  EXPECT_EQ(with("localhost:7070", "null"), 403);
  EXPECT_EQ(StatusWith({{"Host", "evil.example"}}, "/"), 403);
}

TEST_F(HttpServerTest, ThePageAndItsFilesNeedNoToken) {
  client_->set_default_headers({});
  const auto page = client_->Get("/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_EQ(page->body, "<!doctype html>the page");
  EXPECT_EQ(page->get_header_value("Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(page->get_header_value("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(page->get_header_value("Cache-Control"), "no-cache");
  const std::string policy = page->get_header_value("Content-Security-Policy");
  EXPECT_THAT(policy, HasSubstr("default-src 'self'"));
  EXPECT_THAT(policy, HasSubstr("style-src 'self' 'unsafe-inline'"));
  EXPECT_THAT(policy, HasSubstr("img-src 'self' data:"));
}

TEST_F(HttpServerTest, PathsWithoutAFileGetTheMainPage) {
  EXPECT_EQ(client_->Get("/sweeps/s1/trials/17")->body, "<!doctype html>the page");
  GetJson("/assets/missing.js", 404);
}

TEST_F(HttpServerTest, AnUnchangedFileIsNotSentAgain) {
  const std::string etag = client_->Get("/")->get_header_value("ETag");
  EXPECT_EQ(etag, "\"e1\"");
  const auto again = client_->Get("/", {{"If-None-Match", etag}});
  EXPECT_EQ(again->status, 304);
  EXPECT_EQ(again->body, "");
}

TEST_F(HttpServerTest, CompressedFilesSuitTheClient) {
  client_->set_decompress(false);
  const auto packed =
      client_->Get("/assets/app-3f2a.js", {{"Accept-Encoding", "gzip, deflate, br"}});
  EXPECT_EQ(packed->get_header_value("Content-Encoding"), "gzip");
  EXPECT_EQ(packed->body, kPacked);
  EXPECT_THAT(packed->get_header_value("Cache-Control"), HasSubstr("immutable"));
  const auto plain = client_->Get("/assets/app-3f2a.js", {{"Accept-Encoding", "identity"}});
  EXPECT_EQ(plain->get_header_value("Content-Encoding"), "");
  EXPECT_EQ(plain->body, "hello");
}

TEST_F(HttpServerTest, LongAnswersAreCompressed) {
  client_->set_decompress(false);
  const auto packed = client_->Get("/api/v1/sweeps/s1/trials/0", {{"Accept-Encoding", "gzip"}});
  const auto plain = client_->Get("/api/v1/sweeps/s1/trials/0", {{"Accept-Encoding", "identity"}});
  ASSERT_GT(plain->body.size(), 1000u);
  if (packed->get_header_value("Content-Encoding") == "gzip") {
    EXPECT_EQ(Gunzip(packed->body), plain->body);
  } else {
    EXPECT_LT(plain->body.size(), 4096u);
  }
  EXPECT_EQ(Gunzip(Gzip(std::string(1 << 20, 'x'))), std::string(1 << 20, 'x'));
  EXPECT_EQ(Gunzip("not packed"), std::nullopt);
}

TEST_F(HttpServerTest, ABodyMayBeOneMebibyteAndNoMore) {
  const std::string path = "/api/v1/sweeps:validate?directory=/opt";
  const auto fits = client_->Post(path, std::string(kMaxBodyBytes, '#'), "application/yaml");
  ASSERT_TRUE(fits);
  EXPECT_NE(fits->status, 413);
  const auto over = client_->Post(path, std::string(kMaxBodyBytes + 1, '#'), "application/yaml");
  Parsed(over, 413);
  EXPECT_EQ(over->get_header_value("Connection"), "close");
}

TEST_F(HttpServerTest, AChunkedBodyHasTheSameBound) {
  size_t left = kMaxBodyBytes + 1;
  const auto answer = client_->Post(
      "/api/v1/sweeps:validate",
      [&](size_t, httplib::DataSink& sink) {
        const std::string chunk(std::min<size_t>(left, 64 << 10), '#');
        left -= chunk.size();
        sink.write(chunk.data(), chunk.size());
        if (left == 0) sink.done();
        return true;
      },
      "application/yaml");
  Parsed(answer, 413);
}

TEST_F(HttpServerTest, InvalidHttpIsABadRequest) {
  const std::string answer = Exchange("HELLO\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 400"));
  EXPECT_THAT(answer, HasSubstr("application/problem+json"));
  const std::string too_long = Exchange("GET /" + std::string(10'000, 'a') + " HTTP/1.1\r\n\r\n");
  EXPECT_THAT(too_long, HasSubstr("HTTP/1.1 414"));
  EXPECT_THAT(too_long, HasSubstr("8192 bytes"));
}

TEST_F(HttpServerTest, AHeadHasNoBody) {
  const std::string answer =
      Exchange("HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 23"));
  EXPECT_THAT(answer, Not(HasSubstr("the page")));
}

TEST_F(HttpServerTest, ManyRequestsGoOverOneConnection) {
  const std::string request = "GET /livez HTTP/1.1\r\nHost: localhost\r\n";
  std::string pipeline;
  for (int i = 0; i < 20; ++i) pipeline += request + (i % 2 ? "Content-Length: 0\r\n\r\n" : "\r\n");
  pipeline += "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  const std::string answers = Exchange(pipeline);
  int count = 0;
  for (size_t at = 0; (at = answers.find("HTTP/1.1 200", at)) != std::string::npos; ++at) ++count;
  EXPECT_EQ(count, 21);
}

TEST_F(HttpServerTest, ATakenPortIsNamedWithTheRemedy) {
  HttpServer::Options options = ServerOptions();
  options.port = server_->port();
  const auto second = HttpServer::Start(options);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().message, HasSubstr("port " + std::to_string(options.port)));
  EXPECT_THAT(second.error().message, HasSubstr("--port"));
}

TEST_F(HttpServerTest, AStopDoesNotWaitForIdleConnections) {
  EXPECT_EQ(client_->Get("/livez")->status, 200);  // and keeps the connection open
  const auto begun = std::chrono::steady_clock::now();
  server_->Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(2));
}

TEST_F(HttpServerTest, AServerThatWasJustStartedCanBeStopped) {
  for (int i = 0; i < 5; ++i) {
    auto server = HttpServer::Start(ServerOptions());
    ASSERT_TRUE(server.ok());
  }
}

}  // namespace
}  // namespace attune::server
