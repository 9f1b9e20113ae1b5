#include "attune/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/error.h"

namespace attune::inline sdk {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Config Example() {
  return Config(
      {{"lr", 0.1}, {"width", std::int64_t{32}}, {"nesterov", true}, {"optimizer", "sgd"}});
}

TEST(Config, ReadsEachTypeByName) {
  const Config config = Example();
  EXPECT_EQ(config.Real("lr"), 0.1);
  EXPECT_EQ(config.Int("width"), 32);
  EXPECT_TRUE(config.Bool("nesterov"));
  EXPECT_EQ(config.Text("optimizer"), "sgd");
}

TEST(Config, ReadsAnIntegerAsRealButNotARealAsInteger) {
  EXPECT_EQ(Example().Real("width"), 32.0);
  EXPECT_THAT([] { Example().Int("lr"); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("config.lr"), HasSubstr("0.1"), HasSubstr("an integer"))));
}

TEST(Config, NamesAMissingParameterAndTheExistingOnes) {
  EXPECT_THAT([] { Example().Real("rate"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("config.rate: missing"),
                                         HasSubstr("lr, nesterov, optimizer, width"))));
}

TEST(Config, UsesTheFallbackForAbsenceNotForTheWrongType) {
  EXPECT_EQ(Example().IntOr("depth", 3), 3);
  EXPECT_EQ(Example().TextOr("optimizer", "adam"), "sgd");
  EXPECT_THROW(Example().BoolOr("lr", true), Error);
}

TEST(Config, ListsUnreadParameters) {
  const Config config = Example();
  config.Real("lr");
  config.RealOr("momentum", 0.9);
  EXPECT_THAT(config.Unread(), ElementsAre("nesterov", "optimizer", "width"));
}

TEST(Config, JsonKeepsTypesAndEveryBit) {
  const Config config({{"a", 0.1 + 0.2}, {"b", 1.0}, {"c", std::int64_t{1} << 62}, {"d", "\"é\n"}});
  EXPECT_EQ(Config::FromJson(config.ToJson()), config);
}

TEST(Config, RefusesJsonThatIsNotAFlatObject) {
  EXPECT_THROW(Config::FromJson("[1]"), Error);
  EXPECT_THAT([] { Config::FromJson(R"({"lr": null})"); },
              ThrowsMessage<Error>(HasSubstr("config.lr")));
}

}  // namespace
}  // namespace attune::inline sdk
