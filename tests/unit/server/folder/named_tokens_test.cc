#include "server/folder/named_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/result.h"
#include "tests/support/scratch_folder.h"

namespace attune::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NamedTokensTest : public ::testing::Test {
 protected:
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    const std::vector<NamedToken> tokens = tokens_.List().value();
    for (const NamedToken& token : tokens) names.push_back(token.name);
    return names;
  }

  const attune::testing::ScratchFolder folder_;
  const NamedTokens tokens_{folder_.path()};
};

TEST_F(NamedTokensTest, ASecretIsKnownUntilItsTokenIsRemoved) {
  EXPECT_FALSE(tokens_.Find("").value().has_value());
  const NamedTokens of_another_process(folder_.path());
  for (int round = 0; round < 3; ++round) {  // also within one tick of the file system's clock
    const std::string secret = of_another_process.Create("ada", Role::kAdmin).value();
    const auto found = tokens_.Find(secret).value();
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->name, "ada");
    EXPECT_EQ(found->role, Role::kAdmin);
    EXPECT_FALSE(tokens_.Find(secret + "0").value().has_value());
    EXPECT_TRUE(of_another_process.Remove("ada").ok());
    EXPECT_FALSE(tokens_.Find(secret).value().has_value());
  }
}

TEST_F(NamedTokensTest, ATokenStopsWorkingWhenItExpires) {
  const auto now =
      std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  const std::string ended =
      tokens_.Create("bob", Role::kViewer, now - std::chrono::seconds(1)).value();
  EXPECT_FALSE(tokens_.Find(ended).value().has_value());
  const auto later = now + std::chrono::hours(1);
  const std::string works = tokens_.Create("ada", Role::kAdmin, later).value();
  EXPECT_EQ(tokens_.Find(works).value()->expires, later);
  EXPECT_EQ(tokens_.Find(tokens_.Rotate("ada").value()).value()->expires, later);
  EXPECT_THAT(Names(), ElementsAre("ada", "bob"));
  EXPECT_TRUE(tokens_.List().value()[1].HasExpired());
}

TEST_F(NamedTokensTest, ARotatedTokenKeepsItsRole) {
  const std::string before = tokens_.Create("gpu-hosts", Role::kExecutor).value();
  const std::string after = tokens_.Rotate("gpu-hosts").value();
  EXPECT_FALSE(tokens_.Find(before).value().has_value());
  EXPECT_EQ(tokens_.Find(after).value()->role, Role::kExecutor);
  EXPECT_EQ(tokens_.Rotate("nobody").error().code, ErrorCode::kNotFound);
}

TEST_F(NamedTokensTest, SecretsAreNotStored) {
  const std::string secret = tokens_.Create("bob", Role::kViewer).value();
  std::ifstream file(folder_ / "tokens/bob");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(text, HasSubstr("viewer "));
  EXPECT_EQ(text.find(secret), text.npos);
  namespace fs = std::filesystem;
  EXPECT_EQ(fs::status(folder_ / "tokens/bob").permissions(), fs::perms(0600));
  EXPECT_EQ(fs::status(folder_ / "tokens").permissions(), fs::perms(0700));
}

TEST_F(NamedTokensTest, NamesAreValidAndUnique) {
  for (const char* name : {"", "admin", "attune", "Ada", "../token", "a/b", ".new", "a b"})
    EXPECT_EQ(tokens_.Create(name, Role::kViewer).error().code, ErrorCode::kInvalid) << name;
  EXPECT_TRUE(tokens_.Create("ada.l-1_x", Role::kViewer).ok());
  EXPECT_EQ(tokens_.Create("ada.l-1_x", Role::kAdmin).error().code, ErrorCode::kConflict);
  EXPECT_EQ(tokens_.Remove("nobody").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(tokens_.Remove("../token").error().code, ErrorCode::kNotFound);
  EXPECT_THAT(Names(), ElementsAre("ada.l-1_x"));
}

TEST_F(NamedTokensTest, SkipsFilesWithoutAToken) {
  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_TRUE(tokens_.Create("ada", Role::kViewer).ok());
  for (const char* text : {"", "viewer", "viewer 12", "owner ", "viewer  "}) {
    std::ofstream(folder_ / "tokens/broken") << text;
    EXPECT_THAT(Names(), ElementsAre("ada")) << text;
  }
}

}  // namespace
}  // namespace attune::server
