#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/folder/code_storage.h"
#include "system/sha256.h"
#include "tests/unit/server/http/http_fixture.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;

class CodeTest : public HttpFixture {
 protected:
  CodeTest() {
    HttpServer::Options options = ServerOptions();
    options.code = &storage_;
    server_ = HttpServer::Start(options).value();
    client_ = NewClient();
  }
  ~CodeTest() override {
    backend_.Stop();
    server_.reset();
  }

  Json Send(const std::string& path, const std::string& body, int status = 200) {
    return Parsed(client_->Post("/api/v1/code/" + hex_ + path, body, "application/octet-stream"),
                  status);
  }

  Json Create(const std::string& code, const std::string& query, int status) {
    return Parsed(client_->Post("/api/v1/sweeps" + query,
                                "command: [train]\ncode: " + code +
                                    "\nmetric: {name: loss, mode: min}\n"
                                    "parameters: {lr: {min: 0.1, max: 1.0}}\n"
                                    "searcher: {name: random}\nscheduler: {name: asha}\n",
                                "application/yaml"),
                  status);
  }

  CodeStorage storage_{folder_ / "code", 1'000};
  const std::string file_ = std::string("\0\xff binary", 9);
  const std::string manifest_ = "attune-code/1\nfile\t644\t" + std::to_string(file_.size()) + "\t" +
                                Sha256::HexOf(file_) + "\ttrain.py\n";
  const std::string hex_ = Sha256::HexOf(manifest_);
};

TEST_F(CodeTest, TakesASnapshotInPiecesAndReturnsIt) {
  Json state = GetJson("/api/v1/code/" + hex_);
  EXPECT_EQ(state.at("digest"), "sha256:" + hex_);
  EXPECT_EQ(state.at("complete"), false);
  state = Send("/manifest", manifest_.substr(0, 10));
  EXPECT_EQ(state.at("manifest_bytes"), 10);
  state = Send("/manifest?offset=10&last=true", manifest_.substr(10));
  EXPECT_EQ(state.at("missing"), Json::array({Sha256::HexOf(file_)}));
  state = Send("/pack", file_.substr(0, 4));
  EXPECT_EQ(state.at("pack_bytes"), 4);
  state = Send("/pack?offset=4", file_.substr(4));
  EXPECT_EQ(state.at("complete"), true);

  const auto pack = client_->Get("/api/v1/code/" + hex_ + "/pack?offset=1");
  EXPECT_EQ(pack->body, file_.substr(1));
  EXPECT_EQ(pack->get_header_value("X-File-Size"), std::to_string(file_.size()));
  EXPECT_EQ(client_->Get("/api/v1/code/" + hex_ + "/manifest")->body, manifest_);
}

TEST_F(CodeTest, ErrorsSayWhatToDo) {
  EXPECT_EQ(Send("/pack?offset=3", "x", 409).at("type"), "urn:attune:problem:conflict");
  EXPECT_EQ(Send("/manifest?last=true", manifest_ + " ", 422).at("type"),
            "urn:attune:problem:code-damaged");
  EXPECT_THAT(Send("/manifest?offset=-1", "", 400).at("detail"), HasSubstr("offset"));
  EXPECT_THAT(Send("/manifest?last=maybe", "", 400).at("detail"), HasSubstr("last"));
  GetJson("/api/v1/code/" + hex_ + "/pack", 404);
  GetJson("/api/v1/code/" + hex_ + "/manifest", 404);
  GetJson("/api/v1/code/" + hex_.substr(1), 404);
}

TEST_F(CodeTest, ASweepNeedsItsSnapshot) {
  const Json problem = Create("{path: src, exclude: [data/]}", "", 422);
  EXPECT_EQ(problem.at("type"), "urn:attune:problem:code-required");
  EXPECT_EQ(problem.at("code"), (Json{{"path", "src"},
                                      {"include", Json::array()},
                                      {"exclude", {"data/"}},
                                      {"digest", ""},
                                      {"bytes_max", 1'000}}));
  const std::string digest = "sha256:" + hex_;
  const std::string query = "?code_digest=" + digest + "&code_commit=abc&code_dirty=true";
  EXPECT_EQ(Create(".", query, 422).at("code").at("digest"), "") << "the client may send it again";
  EXPECT_EQ(Create("{digest: '" + digest + "'}", "", 422).at("code").at("digest"), digest);

  Send("/manifest?last=true", manifest_);
  Send("/pack", file_);
  const Json created = Create(".", query, 201);
  EXPECT_EQ(created.at("code"), (Json{{"digest", digest}, {"commit", "abc"}, {"dirty", true}}));
  EXPECT_EQ(Create("{digest: '" + digest + "'}", "", 201).at("code").at("dirty"), false);
  EXPECT_THAT(Create(".", "?code_dirty=maybe", 400).at("detail"), HasSubstr("code_dirty"));
}

TEST_F(CodeTest, ViewersSendNothing) {
  const NamedTokens tokens(folder_.path());
  const auto secret = tokens.Create("bob", Role::kViewer);
  ASSERT_TRUE(secret.ok());
  HttpServer::Options options = ServerOptions();
  options.code = &storage_;
  options.named_tokens = &tokens;
  server_ = HttpServer::Start(options).value();
  client_ = NewClient();
  client_->set_default_headers({{"Authorization", "Bearer " + *secret}});
  Send("/manifest", manifest_, 403);
  GetJson("/api/v1/code/" + hex_);
}

}  // namespace
}  // namespace attune::server
