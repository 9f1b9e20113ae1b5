#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/folder/named_tokens.h"
#include "tests/unit/server/http/http_fixture.h"

// Notes and tags of sweeps and trials.
namespace attune::server {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSweepPath = "/api/v1/sweeps/s1:annotate";
constexpr const char* kTrialPath = "/api/v1/sweeps/s1/trials/1:annotate";

class Annotations : public HttpFixture {
 protected:
  Json Sweep() { return GetJson("/api/v1/sweeps/s1"); }
  Json Trial() { return GetJson("/api/v1/sweeps/s1/trials/1"); }

  // The pointer of the first fault of a body that must be refused.
  Json PointerOf(const std::string& body) {
    return PostJson(kTrialPath, body, 422).at("errors")[0].at("pointer");
  }
  static std::string TagList(int first, int count) {
    Json tags = Json::array();
    for (int i = first; i < first + count; ++i) tags.push_back("t" + std::to_string(i));
    return tags.dump();
  }
};

TEST_F(Annotations, ChangeOnlyTheMembersThatAreGiven) {
  EXPECT_EQ(Sweep().at("tags"), Json::array({"baseline"})) << "those of the sweep file";
  EXPECT_EQ(Sweep().at("note"), "");
  const Json noted = PostJson(kSweepPath, R"({"note": "first\nsecond é"})", 202);
  EXPECT_EQ(noted.at("note"), "first\nsecond é");
  EXPECT_EQ(noted.at("tags"), Json::array({"baseline"}));
  PostJson(kSweepPath, R"({"add_tags": ["best", "lr", "best"], "remove_tags": ["baseline"]})", 202);
  EXPECT_EQ(Sweep().at("tags"), Json::array({"best", "lr"}));
  EXPECT_EQ(Sweep().at("note"), "first\nsecond é");
  PostJson(kSweepPath, R"({"tags": ["lr", "lr"], "note": ""})", 202);
  EXPECT_EQ(Sweep().at("tags"), Json::array({"lr"}));
  EXPECT_EQ(Sweep().at("note"), "");
}

TEST_F(Annotations, OfATrialAreInItsAnswersAndFindIt) {
  PostJson(kTrialPath, R"({"note": "overfits", "tags": ["Best", "ablation"]})", 202);
  EXPECT_EQ(Trial().at("note"), "overfits");
  const Json list = GetJson("/api/v1/sweeps/s1/trials?filter=tag:best");
  ASSERT_EQ(list.at("trials").size(), 1u);
  EXPECT_EQ(list.at("trials")[0].at("number"), 1);
  EXPECT_EQ(list.at("trials")[0].at("tags"), Json::array({"Best", "ablation"}));
  EXPECT_FALSE(list.at("trials")[0].contains("note")) << "notes may be large";
  const Json action = GetJson("/api/v1/sweeps/s1/activity").at("actions")[0];
  EXPECT_EQ(action.at("actor"), "admin");
  EXPECT_EQ(action.at("action"), "annotate");
  EXPECT_EQ(action.at("trial"), 1);
  EXPECT_EQ(action.at("detail"), R"(tags Best, ablation (was none); note "overfits" (was none))");
}

TEST_F(Annotations, WithoutAChangeCauseNoEvent) {
  PostJson(kTrialPath, R"({"note": "a", "add_tags": ["b"]})", 202);
  const EventSeq before = reader_->LastSeq().value();
  PostJson(kTrialPath, R"({"note": "a", "add_tags": ["b"], "remove_tags": ["c"]})", 202);
  PostJson(kTrialPath, R"({"tags": []})", 202);
  PostJson(kTrialPath, R"({"tags": []})", 202);
  EXPECT_EQ(reader_->LastSeq().value(), EventSeq(before.value + 1));
}

TEST_F(Annotations, AreKeptWhenOthersChangeTagsAtTheSameTime) {
  constexpr int kClients = 8;
  std::vector<std::jthread> others;
  for (int i = 0; i < kClients; ++i)
    others.emplace_back([&, i] {
      const auto client = NewClient();
      Parsed(client->Post(kTrialPath, R"({"add_tags": )" + TagList(i, 1) + "}", "application/json"),
             202);
    });
  others.clear();
  EXPECT_EQ(Trial().at("tags").size(), static_cast<size_t>(kClients));
}

TEST_F(Annotations, BadBodiesNameTheMember) {
  const std::string long_tag(kTagBytesMax + 1, 'x');
  const std::string long_note(kNoteBytesMax + 1, 'x');
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{}", "/note"},
      {R"({"nose": "x"})", "/nose"},
      {R"({"note": ["x"]})", "/note"},
      {R"({"note": "a\u0007b"})", "/note"},
      {R"({"note": ")" + long_note + R"("})", "/note"},
      {R"({"tags": "best"})", "/tags"},
      {R"({"tags": [""]})", "/tags/0"},
      {R"({"add_tags": ["a", "b c"]})", "/add_tags/1"},
      {R"({"add_tags": ["a,b"]})", "/add_tags/0"},
      {R"({"add_tags": ["a\"b"]})", "/add_tags/0"},
      {R"({"add_tags": ["it's"]})", "/add_tags/0"},
      {R"({"add_tags": ["a\tb"]})", "/add_tags/0"},
      {R"({"add_tags": [")" + long_tag + R"("]})", "/add_tags/0"},
      {R"({"tags": ["a"], "add_tags": ["b"]})", "/tags"},
      {R"({"tags": )" + TagList(0, kTagsMax + 1) + "}", "/tags"},
  };
  for (const auto& [body, pointer] : cases) EXPECT_EQ(PointerOf(body), pointer) << body;
  EXPECT_EQ(Trial().at("tags"), Json::array());
}

TEST_F(Annotations, HaveLimitsThatCanBeReached) {
  const std::string long_tag(kTagBytesMax, 'x');
  const std::string long_note(kNoteBytesMax, 'x');
  PostJson(kTrialPath, R"({"note": ")" + long_note + R"(", "tags": [")" + long_tag + R"("]})", 202);
  PostJson(kTrialPath, R"({"add_tags": )" + TagList(1, kTagsMax - 1) + "}", 202);
  EXPECT_EQ(PointerOf(R"({"add_tags": ["more"]})"), "/add_tags");
  PostJson(kTrialPath, R"({"add_tags": ["more"], "remove_tags": ["t1"]})", 202);
  EXPECT_EQ(Trial().at("tags").size(), kTagsMax);
}

TEST_F(Annotations, TagsOfTheSweepFileStayWhateverTheirFormIs) {
  const std::string file =
      R"({"name": "two", "tags": ["x y"], "command": ["/bin/true"], "searcher": {"name": "random"},
          "metric": {"name": "accuracy", "mode": "max"}, "parameters": {"lr": {"min": 0, "max": 1}},
          "scheduler": {"name": "asha", "max": 9}, "stop": {"max_trials": 2}})";
  PostJson("/api/v1/sweeps?directory=/opt", file, 201);
  const std::string path = "/api/v1/sweeps/s2:annotate";
  EXPECT_EQ(PostJson(path, R"({"tags": ["x y", "z"]})", 202).at("tags"), Json::array({"x y", "z"}));
  EXPECT_EQ(PostJson(path, R"({"remove_tags": ["x y"]})", 202).at("tags"), Json::array({"z"}));
  PostJson(path, R"({"add_tags": ["x y"]})", 422);
  PostJson("/api/v1/sweeps/s2:edit", R"({"priority": 3})", 202);
  EXPECT_EQ(GetJson("/api/v1/sweeps/s2").at("tags"), Json::array({"z"}));
  EXPECT_EQ(PostJson("/api/v1/sweeps/s2:edit", R"({"tags": ["new"]})", 202).at("tags"),
            Json::array({"new"}));
}

TEST_F(Annotations, OfUnknownSweepsAndTrialsAreNotFound) {
  PostJson("/api/v1/sweeps/s9:annotate", R"({"note": "a"})", 404);
  PostJson("/api/v1/sweeps/s1/trials/99:annotate", R"({"note": "a"})", 404);
}

TEST_F(Annotations, NeedTheRoleAdmin) {
  const NamedTokens tokens(folder_.path());
  HttpServer::Options options = ServerOptions();
  options.named_tokens = &tokens;
  server_ = HttpServer::Start(options).value();
  client_ = NewClient();
  client_->set_default_headers(
      {{"Authorization", "Bearer " + tokens.Create("eve", Role::kViewer).value()}});
  PostJson(kSweepPath, R"({"note": "a"})", 403);
  PostJson(kTrialPath, R"({"note": "a"})", 403);
  EXPECT_EQ(Sweep().at("note"), "");
}

}  // namespace
}  // namespace attune::server
