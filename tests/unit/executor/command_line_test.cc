#include "executor/gang/command_line.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/support/golden.h"

namespace attune::gang {
namespace {

using ::testing::ElementsAre;

const std::vector<NamedValue> kConfig{
    {"lr", 0.1}, {"width", int64_t{32}}, {"nesterov", false}, {"name", std::string("a b")}};

std::vector<std::string> Expand(std::vector<std::string> command) {
  return ExpandCommand(command, kConfig, "/attempt/config.json").value();
}

std::string ErrorOf(std::vector<std::string> command) {
  return ExpandCommand(command, kConfig, "/attempt/config.json").error().message;
}

TEST(CommandLine, ArgsExpandToOneArgumentForEachEntry) {
  EXPECT_THAT(
      Expand({"train", "${args}", "-v"}),
      ElementsAre("train", "--lr=0.1", "--width=32", "--nesterov=false", "--name=a b", "-v"));
}

TEST(CommandLine, ArgsMayBeFlagsOrPlain) {
  EXPECT_THAT(Expand({"train", "${args.flags}"}),
              ElementsAre("train", "--lr=0.1", "--width=32", "--name=a b"));
  EXPECT_THAT(ExpandCommand({"train", "${args.flags}"}, {{"amp", true}}, "").value(),
              ElementsAre("train", "--amp"));
  EXPECT_THAT(Expand({"train", "${args.plain}"}),
              ElementsAre("train", "lr=0.1", "width=32", "nesterov=false", "name=a b"));
}

TEST(CommandLine, ReplacesParametersInsideAnArgument) {
  EXPECT_THAT(Expand({"train", "--opt=lr:${param.lr},w:${param.width}"}),
              ElementsAre("train", "--opt=lr:0.1,w:32"));
}

TEST(CommandLine, ConfigExpandsToThePathOfItsFile) {
  EXPECT_THAT(Expand({"train", "${config}"}), ElementsAre("train", "/attempt/config.json"));
  EXPECT_TRUE(UsesConfigFile({"train", "--config=${config}"}));
  EXPECT_FALSE(UsesConfigFile({"train", "${args}"}));
}

TEST(CommandLine, ADoubledDollarIsLiteral) {
  EXPECT_THAT(Expand({"sh", "-c", "echo $${HOME} $HOME $$ ${param.lr}"}),
              ElementsAre("sh", "-c", "echo ${HOME} $HOME $$ 0.1"));
}

TEST(CommandLine, DoesNotExpandValuesAgain) {
  EXPECT_EQ(ExpandCommand({"${param.x}"}, {{"x", std::string("${config}")}}, "/f").value()[0],
            "${config}");
}

TEST(CommandLine, NamesMistakes) {
  std::string messages;
  for (const char* argument :
       {"${rank}", "${param.depth}", "x${args}", "x${args.plain}", "${param.lr"})
    messages += std::string(argument) + " -> " + ErrorOf({"train", argument}) + "\n";
  messages += "(no command) -> " + ErrorOf({}) + "\n";
  attune::testing::ExpectGolden("executor/command_line", messages);
}

TEST(CommandLine, NumbersAreShortestAndRoundTrip) {
  EXPECT_EQ(ToText(0.1), "0.1");
  EXPECT_EQ(ToText(1.0 / 3.0), "0.3333333333333333");
  EXPECT_EQ(ToText(1e-5), "1e-05");
  EXPECT_EQ(ToText(int64_t{INT64_MIN}), "-9223372036854775808");
}

}  // namespace
}  // namespace attune::gang
