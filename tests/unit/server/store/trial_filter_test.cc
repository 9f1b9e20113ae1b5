#include "server/store/trials/trial_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/result.h"
#include "server/store/json.h"

namespace attune::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A list of cases. The tests of the dashboard use the same file.
Json SharedCases(const std::string& list) {
  std::ifstream file(std::filesystem::path(ATTUNE_SOURCE_DIR) / "tests/data/trial_filters.json");
  return Json::parse(file).at(list);
}

TEST(TrialFilter, MalformedFiltersNameThePositionAndTheExpectation) {
  for (const Json& malformed : SharedCases("malformed")) {
    const std::string text = malformed[0];
    const auto filter = ParseTrialFilter(text);
    ASSERT_FALSE(filter.ok()) << text;
    EXPECT_EQ(filter.error().code, ErrorCode::kInvalid) << text;
    EXPECT_THAT(filter.error().message,
                AllOf(HasSubstr("filter: at position " + malformed[1].dump() + ":"),
                      HasSubstr("expected " + malformed[2].get<std::string>())))
        << text;
  }
}

TEST(TrialFilter, ValidFiltersAreParsed) {
  for (const Json& text : SharedCases("valid")) {
    const auto filter = ParseTrialFilter(text.get<std::string>());
    EXPECT_TRUE(filter.ok()) << text << ": " << (filter.ok() ? "" : filter.error().message);
  }
}

TEST(TrialFilter, EmptyTextMatchesEveryTrial) {
  for (const std::string text : {"", "  \t"}) {
    const auto filter = ParseTrialFilter(text);
    ASSERT_TRUE(filter.ok());
    EXPECT_TRUE(std::get<MatchAll>(filter->match).parts.empty());
  }
}

TEST(TrialFilter, AndBindsMoreTightlyThanOr) {
  const auto filter = ParseTrialFilter("a b OR c");
  ASSERT_TRUE(filter.ok());
  const auto& any = std::get<MatchAny>(filter->match);
  ASSERT_EQ(any.parts.size(), 2u);
  EXPECT_EQ(std::get<MatchAll>(any.parts[0].match).parts.size(), 2u);
  EXPECT_EQ(any.parts[1].position, 8u);
}

TEST(TrialFilter, OperatorsInQuotesBelongToNames) {
  const auto filter = ParseTrialFilter("\"a<b c\"<=3");
  ASSERT_TRUE(filter.ok());
  const auto& comparison = std::get<MatchComparison>(filter->match);
  EXPECT_EQ(comparison.name, "a<b c");
  EXPECT_EQ(comparison.comparison, Comparison::kLessOrEqual);
  EXPECT_EQ(comparison.number, 3);
}

TEST(TrialFilter, HasBounds) {
  const auto nested = [](int depth) {
    return std::string(depth, '(') + 'a' + std::string(depth, ')');
  };
  EXPECT_TRUE(ParseTrialFilter(nested(kFilterDepthMax)).ok());
  EXPECT_FALSE(ParseTrialFilter(nested(kFilterDepthMax + 1)).ok());
  EXPECT_TRUE(ParseTrialFilter(std::string(kFilterDepthMax, '-') + 'a').ok());
  EXPECT_FALSE(ParseTrialFilter(std::string(kFilterDepthMax + 1, '-') + 'a').ok());
  std::string words;
  for (int i = 0; i < kFilterWordsMax; ++i) words += "a ";
  EXPECT_TRUE(ParseTrialFilter(words).ok());
  EXPECT_FALSE(ParseTrialFilter(words + "a").ok());
  EXPECT_TRUE(ParseTrialFilter(std::string(kFilterBytesMax, 'a')).ok());
  EXPECT_FALSE(ParseTrialFilter(std::string(kFilterBytesMax + 1, 'a')).ok());
}

}  // namespace
}  // namespace attune::server
