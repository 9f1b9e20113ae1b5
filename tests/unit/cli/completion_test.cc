#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/completion/scripts.h"
#include "tests/unit/cli/command_line.h"
#include "tests/unit/cli/fake_server.h"

namespace attune::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::SizeIs;

using Lines = std::vector<std::string>;

// The answer of `attune __complete`: its kind, then the candidates without descriptions.
Lines Complete(std::vector<std::string> words) {
  words.insert(words.begin(), "__complete");
  std::istringstream text(RunAttune(words).out);
  Lines lines;
  for (std::string line; std::getline(text, line);)
    lines.push_back(line.substr(0, line.find('\t')));
  return lines;
}

TEST(Completion, OffersCommands) {
  EXPECT_THAT(Complete({""}), IsSupersetOf({"words", "run", "sweep", "doctor", "completion"}));
  EXPECT_THAT(Complete({"sw"}), ElementsAre("words", "sweep"));
  EXPECT_THAT(Complete({"sweep", "cre"}), ElementsAre("words", "create"));
}

TEST(Completion, FindsCommandsByAliases) {
  EXPECT_THAT(Complete({"node", "dr"}), ElementsAre("words", "drain"));
}

TEST(Completion, OffersOptionsOfTheCommand) {
  EXPECT_THAT(Complete({"serve", "--with"}), ElementsAre("words", "--with-executor"));
  EXPECT_THAT(Complete({"run", "--no-e"}), ElementsAre("words", "--no-executor"));
  EXPECT_THAT(Complete({"serve", "-"}), Contains("-h"));
}

TEST(Completion, OffersAnOptionOnlyOnce) {
  EXPECT_THAT(Complete({"serve", "--with-executor", "--with"}), ElementsAre("words"));
  EXPECT_THAT(Complete({"serve", "--label", "gpu=h100", "--lab"}), ElementsAre("words", "--label"));
}

TEST(Completion, OffersTheValuesOfAnOption) {
  EXPECT_THAT(Complete({"version", "-o", ""}), ElementsAre("words", "table", "json"));
  EXPECT_THAT(Complete({"version", "--output=j"}), ElementsAre("words", "--output=json"));
  EXPECT_THAT(Complete({"token", "create", "--role", "v"}), ElementsAre("words", "viewer"));
  EXPECT_THAT(Complete({"completion", ""}), ElementsAre("words", "bash", "zsh", "fish"));
}

TEST(Completion, KnowsFilesAndFolders) {
  EXPECT_THAT(Complete({"run", ""}), ElementsAre("files"));
  EXPECT_THAT(Complete({"sweep", "create", "--file", "sw"}), ElementsAre("files"));
  EXPECT_THAT(Complete({"serve", "--tls-cert", ""}), ElementsAre("files"));
  EXPECT_THAT(Complete({"serve", "--tls-cert=/et"}), ElementsAre("files"));
  EXPECT_THAT(Complete({"serve", "--data-dir", ""}), ElementsAre("folders"));
  EXPECT_THAT(Complete({"train", "--workers", "2", "--", "./tr"}), ElementsAre("files"));
}

TEST(Completion, OffersNothingForFreeText) {
  EXPECT_THAT(Complete({"serve", "--host", ""}), ElementsAre("words"));
  EXPECT_THAT(Complete({"no-such-command", "x"}), ElementsAre("words"));
  EXPECT_THAT(Complete({"serve", "--no-such-option=", ""}), Not(SizeIs(0)));
}

TEST(Completion, OffersSweepsOfTheServer) {
  FakeServer server;
  ScratchFolder folder;
  server.WriteTo(folder.path());
  server.Answer("/sweeps", {{"sweeps", {SweepJson("s2", "running"), SweepJson("s1", "completed")}},
                            {"next_page_token", ""}});
  EXPECT_THAT(Complete({"sweep", "get", "--data-dir", folder.path().string(), "s"}),
              ElementsAre("words", "s2", "s1"));
}

TEST(Completion, HasAScriptForEachShell) {
  for (const std::string& shell : Shells()) {
    const Ran ran = RunAttune({"completion", shell});
    EXPECT_EQ(ran.code, ExitCode::kSuccess);
    EXPECT_THAT(ran.out, ::testing::HasSubstr("__complete")) << shell;
  }
  EXPECT_EQ(RunAttune({"completion", "csh"}).code, ExitCode::kUsage);
}

TEST(Description, HasEveryCommandAndOption) {
  const Json tree = Json::parse(RunAttune({"__describe"}).out);
  const auto named = [](const Json& list, const std::string& name) {
    for (const Json& each : list) {
      if (each.contains("name") ? each["name"] == name : each["names"].back() == name) return each;
    }
    ADD_FAILURE() << name;
    return Json();
  };
  const Json serve = named(tree.at("verbs"), "serve");
  EXPECT_EQ(named(serve.at("options"), "--tls-key").at("value"), "FILE");
  EXPECT_EQ(named(serve.at("options"), "--https-port").at("default"), "7443");
  EXPECT_EQ(named(serve.at("options"), "--with-executor").at("value"), "");
  const Json version = named(tree.at("verbs"), "version");
  EXPECT_EQ(named(version.at("options"), "--server").at("environment"), "ATTUNE_SERVER");
  EXPECT_EQ(named(version.at("options"), "--output").at("values"), Json({"table", "json"}));
  const Json run = named(tree.at("verbs"), "run");
  EXPECT_EQ(named(run.at("positionals"), "FILE").at("required"), true);
}

}  // namespace
}  // namespace attune::cli
