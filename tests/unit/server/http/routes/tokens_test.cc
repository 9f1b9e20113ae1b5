#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/folder/named_tokens.h"
#include "tests/unit/server/http/http_fixture.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;

class TokensTest : public HttpFixture {
 protected:
  TokensTest() {
    HttpServer::Options options = ServerOptions();
    options.named_tokens = &tokens_;
    server_ = HttpServer::Start(options).value();
    client_ = NewClient();
  }
  ~TokensTest() override {
    backend_.Stop();
    server_.reset();
  }

  std::string Create(const std::string& body) {
    return PostJson("/api/v1/tokens", body, 201).at("secret");
  }
  void ShowToken(const std::string& secret) {
    client_->set_default_headers({{"Authorization", "Bearer " + secret}});
  }

  const NamedTokens tokens_{folder_.path()};
};

TEST_F(TokensTest, ATokenWorksUntilItIsRevoked) {
  const std::string secret = Create(R"({"name": "ada", "role": "admin", "expires_in": 3600})");
  const Json listed = GetJson("/api/v1/tokens").at("tokens").at(0);
  EXPECT_EQ(listed.at("name"), "ada");
  EXPECT_EQ(listed.at("role"), "admin");
  EXPECT_TRUE(listed.at("expires").is_string());
  EXPECT_EQ(listed.at("expired"), false);
  EXPECT_FALSE(listed.contains("secret"));
  ShowToken(secret);
  EXPECT_EQ(GetJson("/api/v1/session"), (Json{{"name", "ada"}, {"role", "admin"}}));
  Parsed(client_->Delete("/api/v1/tokens/ada"), 200);
  GetJson("/api/v1/session", 401);
}

TEST_F(TokensTest, OnlyAdminsSeeAndChangeTokens) {
  ShowToken(Create(R"({"name": "bob"})"));
  EXPECT_EQ(GetJson("/api/v1/session").at("role"), "viewer");
  EXPECT_THAT(GetJson("/api/v1/tokens", 403).at("detail"), HasSubstr("admin"));
  PostJson("/api/v1/tokens", R"({"name": "eve"})", 403);
  Parsed(client_->Delete("/api/v1/tokens/bob"), 403);
}

TEST_F(TokensTest, ABadRequestNamesTheFault) {
  Create(R"({"name": "bob"})");
  EXPECT_THAT(PostJson("/api/v1/tokens", R"({"name": "bob"})", 409).at("detail"),
              HasSubstr("already"));
  EXPECT_THAT(PostJson("/api/v1/tokens", R"({"name": "admin"})", 422).at("detail"),
              HasSubstr("name"));
  EXPECT_THAT(
      PostJson("/api/v1/tokens", R"({"name": "eve", "role": "executor"})", 422).at("detail"),
      HasSubstr("role"));
  EXPECT_THAT(PostJson("/api/v1/tokens", R"({"name": "eve", "expires_in": -1})", 422).at("detail"),
              HasSubstr("expires_in"));
  PostJson("/api/v1/tokens", "{", 400);
  Parsed(client_->Delete("/api/v1/tokens/nobody"), 404);
}

}  // namespace
}  // namespace attune::server
