#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/result.h"
#include "server/folder/secrets.h"
#include "tests/unit/cli/command_line.h"
#include "tests/unit/cli/fake_server.h"

namespace attune::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kValue = "s3cr3t-of-mine";

class SecretCommands : public ::testing::Test {
 protected:
  SecretCommands() {
    host_.read_secret = [this](const std::string&, Interrupt&) { return Result(typed_); };
  }

  Ran Secret(std::vector<std::string> args) {
    args.insert(args.begin(), "secret");
    args.insert(args.end(), {"--data-dir", folder_.path().string()});
    return RunAttune(args, host_, interrupt_);
  }

  ScratchFolder folder_;
  std::string typed_ = kValue;
  Interrupt interrupt_;
  Host host_;
};

TEST_F(SecretCommands, SetStoresTheValueAndDoesNotPrintIt) {
  const Ran ran = Secret({"set", "KEY"});
  EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
  EXPECT_THAT(ran.out + ran.err, Not(HasSubstr(kValue)));
  EXPECT_EQ(server::Secrets(folder_.path()).Find("KEY").value(), kValue);
}

TEST_F(SecretCommands, SetWarnsIfAValueIsTooShortToMask) {
  typed_ = "1234567";
  EXPECT_THAT(Secret({"set", "KEY"}).err, HasSubstr("8 bytes"));
}

TEST_F(SecretCommands, SetRefusesNamesAndValuesThatProgramsCannotRead) {
  EXPECT_EQ(Secret({"set", "A-B"}).code, ExitCode::kUsage);
  EXPECT_EQ(Secret({"set", "ATTUNE_TOKEN"}).code, ExitCode::kUsage);
  typed_ = "";
  const Ran ran = Secret({"set", "KEY"});
  EXPECT_EQ(ran.code, ExitCode::kUsage);
  EXPECT_THAT(ran.err, HasSubstr("KEY: "));
}

TEST_F(SecretCommands, RefusesAValueAsArgument) {
  EXPECT_EQ(Secret({"set", "KEY", kValue}).code, ExitCode::kUsage);
}

TEST_F(SecretCommands, ListPrintsNames) {
  Secret({"set", "B"});
  Secret({"set", "A"});
  EXPECT_EQ(Secret({"list"}).out, "A\nB\n");
  EXPECT_EQ(Json::parse(Secret({"list", "-o", "json"}).out), (Json{{"secrets", {"A", "B"}}}));
}

TEST_F(SecretCommands, RemoveForgetsTheValueOnlyIfAsked) {
  Secret({"set", "KEY"});
  EXPECT_EQ(Secret({"rm", "KEY"}).code, ExitCode::kSuccess);
  EXPECT_EQ(Secret({"rm", "KEY"}).code, ExitCode::kNotFound);
  EXPECT_EQ(server::Secrets(folder_.path()).Mask().value()->longest_bytes(), kValue.size());
  EXPECT_EQ(Secret({"rm", "KEY", "--forget"}).code, ExitCode::kSuccess);
  EXPECT_EQ(server::Secrets(folder_.path()).Mask().value()->longest_bytes(), 0u);
}

}  // namespace
}  // namespace attune::cli
