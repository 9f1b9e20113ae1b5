#include "core/base/ids.h"

#include <gtest/gtest.h>

#include "base/result.h"
#include "tests/support/mentions.h"

namespace attune {
namespace {

TEST(Ids, ArePrintedInTheFormThatUsersType) {
  const TrialId trial(SweepId(1), TrialNumber(17));

  EXPECT_EQ(ToString(SweepId(1)), "s1");
  EXPECT_EQ(ToString(trial), "s1/17");
  EXPECT_EQ(ToString(AttemptId{trial, 2}), "s1/17.2");
}

TEST(Ids, RoundTripThroughText) {
  const TrialId trial(SweepId(18446744073709551615u), TrialNumber(4294967295u));

  EXPECT_EQ(*ParseSweepId(ToString(trial.sweep)), trial.sweep);
  EXPECT_EQ(*ParseTrialId(ToString(trial)), trial);
  EXPECT_EQ(*ParseTrialId("s1/0"), TrialId(SweepId(1), TrialNumber(0)));
}

TEST(Ids, RefuseTextThatIsNotASweep) {
  for (const char* text : {"", "s", "1", "s0", "s01", "s-1", "s+1", "s1x", "S1", " s1", "s1 ",
                           "s18446744073709551616", "s1/2"}) {
    EXPECT_FALSE(ParseSweepId(text).ok()) << text;
  }
}

TEST(Ids, RefuseTextThatIsNotATrial) {
  for (const char* text :
       {"", "s1", "s1/", "/1", "1/1", "s1/01", "s1/-1", "s1/4294967296", "s1/1/1", "s1/1.2"}) {
    EXPECT_FALSE(ParseTrialId(text).ok()) << text;
  }
}

TEST(Ids, AnErrorQuotesTheTextAndShowsTheForm) {
  const auto parsed = ParseTrialId("s1");

  EXPECT_EQ(parsed.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(parsed.error().message, testing::Mentions("'s1'", "s1/17"));
}

}  // namespace
}  // namespace attune
