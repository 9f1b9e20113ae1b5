#include "rest/contract.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "base/result.h"
#include "json/parse.h"

namespace attune::rest {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Json AnObjective() { return {{"name", "loss"}, {"mode", "min"}, {"target", nullptr}}; }

TEST(Contract, ReadsWhatItWrites) {
  LoggedPoint point;
  point.seq = 812;
  point.step = 2.25;
  point.metrics = {{"loss", 0.5}, {"norm", std::numeric_limits<double>::infinity()}};

  const auto read = Parse<LoggedPoint>(ToJson(point));

  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(ToJson(*read), ToJson(point));
}

TEST(Contract, WritesNumbersThatJsonLacksAsStrings) {
  LoggedPoint point;
  point.metrics = {{"a", std::nan("")}, {"b", -std::numeric_limits<double>::infinity()}};

  EXPECT_EQ(ToJson(point)["metrics"], (Json{{"a", "nan"}, {"b", "-inf"}}));
}

TEST(Contract, IncludesTheMembersOfTheExtendedObject) {
  const auto read = Parse<Objective>(AnObjective());

  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->name, "loss");
  EXPECT_EQ(read->target, std::nullopt);
}

TEST(Contract, LeavesOutAbsentMembersAndKeepsNull) {
  EXPECT_FALSE(ToJson(Plateau()).contains("std"));
  EXPECT_TRUE(ToJson(Objective()).at("target").is_null());
}

TEST(Contract, LeavesOutMembersSetToNullopt) {
  const std::optional<int64_t> nothing;

  EXPECT_EQ(ToJson(Extension{.max_trials = std::optional<int64_t>(3), .max_step = nothing}),
            (Json{{"max_trials", 3}}));
}

TEST(Contract, IgnoresMembersItDoesNotKnow) {
  Json json = AnObjective();
  json["color"] = "red";

  EXPECT_TRUE(Parse<Objective>(json).ok());
}

TEST(Contract, NamesAMissingMember) {
  Json json = {{"executors", {{{"name", "box"}}}}};

  const auto read = Parse<ExecutorList>(json);

  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(read.error().message, AllOf(HasSubstr("executors[0]"), HasSubstr("state")));
}

TEST(Contract, NamesAMemberOfAnotherType) {
  Json json = AnObjective();
  json["target"] = "high";

  const auto read = Parse<Objective>(json);

  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message, HasSubstr("target"));
}

TEST(Contract, NamesAMemberOutsideItsBounds) {
  const auto negative = Parse<Amount>({{"nodes", 0}, {"cpus", -0.5}, {"gpus", 1}});
  const auto at_bound = Parse<DrainRequest>({{"reason", std::string(1000, 'x')}});
  const auto too_long = Parse<DrainRequest>({{"reason", std::string(1001, 'x')}});

  ASSERT_FALSE(negative.ok());
  EXPECT_THAT(negative.error().message, HasSubstr("cpus"));
  EXPECT_TRUE(at_bound.ok());
  ASSERT_FALSE(too_long.ok());
  EXPECT_THAT(too_long.error().message, AllOf(HasSubstr("reason"), HasSubstr("1000")));
}

TEST(Contract, CountsCharactersAndNotBytes) {
  std::string umlauts;
  for (int i = 0; i < 1000; ++i) umlauts += "ä";

  EXPECT_TRUE(Parse<DrainRequest>({{"reason", umlauts}}).ok());
}

TEST(Contract, ServesItselfAsJson) {
  const Json document = ParseJson<Json>(kOpenApi);

  ASSERT_TRUE(document.is_object());
  EXPECT_EQ(document["openapi"], "3.1.0");
}

TEST(Problems, HaveDistinctTypes) {
  std::set<std::string> types;
  for (const ProblemRow& row : kProblems) types.insert(row.type);

  EXPECT_EQ(types.size(), std::size(kProblems));
}

}  // namespace
}  // namespace attune::rest
