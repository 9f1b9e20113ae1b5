#include "trainable/start/standalone_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/error.h"

namespace attune::inline sdk::trainable {
namespace {

using ::testing::ElementsAre;

std::variant<StandaloneOptions, int> Parse(std::vector<const char*> args) {
  args.insert(args.begin(), "program");
  return ParseStandaloneOptions(static_cast<int>(args.size()), const_cast<char**>(args.data()), 10);
}

TEST(StandaloneOptions, InfersTheTypeOfAValue) {
  const Config config(
      ParseAssignments("lr=1e-3,width=32,nesterov=true,optimizer=sgd,version=1.2.3"));
  EXPECT_EQ(config.Real("lr"), 1e-3);
  EXPECT_EQ(config.Int("width"), 32);
  EXPECT_TRUE(config.Bool("nesterov"));
  EXPECT_EQ(config.Text("optimizer"), "sgd");
  EXPECT_EQ(config.Text("version"), "1.2.3");
}

TEST(StandaloneOptions, RefusesAnAssignmentWithoutNameOrValue) {
  EXPECT_THROW(ParseAssignments("lr"), Error);
  EXPECT_THROW(ParseAssignments("=1"), Error);
}

TEST(StandaloneOptions, RefusesANegativeStep) {
  ::testing::internal::CaptureStderr();
  EXPECT_NE(std::get<int>(Parse({"--max-step", "-1"})), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("--max-step: `-1` "));
}

TEST(StandaloneOptions, DefaultsToOneWorkerAndTheProgramsSteps) {
  const auto options = std::get<StandaloneOptions>(Parse({}));
  EXPECT_EQ(options.workers, 1);
  EXPECT_EQ(options.max_step, 10);
}

TEST(StandaloneOptions, ConfigMayBeRepeatedAndTheLastValueWins) {
  const auto options =
      std::get<StandaloneOptions>(Parse({"--config", "a=1,b=2", "--config", "b=3"}));
  EXPECT_EQ(options.config.Int("a"), 1);
  EXPECT_EQ(options.config.Int("b"), 3);
}

TEST(StandaloneOptions, PassesArgumentsAfterTwoDashesToTheProgram) {
  const auto options =
      std::get<StandaloneOptions>(Parse({"--workers", "2", "--", "--data", "/data"}));
  EXPECT_EQ(options.workers, 2);
  EXPECT_THAT(options.args, ElementsAre("--data", "/data"));
}

TEST(StandaloneOptions, WrongArgumentsExitWith2AndHelpWith0) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  EXPECT_EQ(std::get<int>(Parse({"--worker", "2"})), 2);
  EXPECT_EQ(std::get<int>(Parse({"--workers", "0"})), 2);
  EXPECT_EQ(std::get<int>(Parse({"--config", "lr"})), 2);
  EXPECT_EQ(std::get<int>(Parse({"--resume", "/nowhere"})), 2);
  EXPECT_EQ(std::get<int>(Parse({"--help"})), 0);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("/nowhere"));
  EXPECT_THAT(testing::internal::GetCapturedStdout(), testing::HasSubstr("--checkpoint-dir"));
}

}  // namespace
}  // namespace attune::inline sdk::trainable
