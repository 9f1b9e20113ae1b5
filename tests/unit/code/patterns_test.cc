#include "code/patterns.h"

#include <gtest/gtest.h>

#include "base/result.h"
#include "tests/unit/code/shared_cases.h"

namespace attune::code {
namespace {

TEST(Patterns, MatchTheFilesOfGitignore) {
  for (const Json& each : SharedCases("code_patterns.json").at("cases").get<std::vector<Json>>()) {
    const auto list = each[0].get<std::vector<std::string>>();
    const Result<Patterns> patterns = Patterns::FromList(list);
    ASSERT_TRUE(patterns.ok()) << each[0];
    for (const std::string path : each[1])
      EXPECT_TRUE(patterns->MatchesFile(path)) << each[0] << path;
    for (const std::string path : each[2])
      EXPECT_FALSE(patterns->MatchesFile(path)) << each[0] << path;
  }
}

TEST(Patterns, MalformedOnesAreRefused) {
  for (const Json& each :
       SharedCases("code_patterns.json").at("malformed").get<std::vector<Json>>()) {
    const Result<Patterns> patterns = Patterns::FromList({each.get<std::string>()});
    ASSERT_FALSE(patterns.ok()) << each;
    EXPECT_EQ(patterns.error().code, ErrorCode::kInvalid);
  }
}

TEST(Patterns, LinesMayBeEmptyOrCommentsOrEndWithBlanks) {
  const Patterns patterns =
      Patterns::ParseLines("\xef\xbb\xbf# a comment\r\n\r\n\n*.log  \r\nkept\\ \nlast");
  EXPECT_TRUE(patterns.MatchesFile("x.log"));
  EXPECT_TRUE(patterns.MatchesFile("kept "));
  EXPECT_TRUE(patterns.MatchesFile("last"));
  EXPECT_FALSE(patterns.MatchesFile("# a comment"));
}

}  // namespace
}  // namespace attune::code
