#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "tests/unit/cli/command_line.h"

namespace attune::cli {
namespace {

std::string Reference() {
  std::ifstream stream(std::string(ATTUNE_SOURCE_DIR) + "/docs/reference/cli.md");
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::set<std::string> Flags(const std::string& help) {
  static const std::regex flag("(^|[\\s,])(--[a-z][a-z-]*)");
  std::set<std::string> flags;
  for (std::sregex_iterator match(help.begin(), help.end(), flag), end; match != end; ++match) {
    flags.insert((*match)[2]);
  }
  return flags;
}

// The names below "Subcommands:".
std::vector<std::string> Subcommands(const std::string& help) {
  std::vector<std::string> names;
  std::istringstream lines(help);
  bool below = false;
  for (std::string line; std::getline(lines, line);) {
    if (below && line.starts_with("  ")) {
      std::istringstream words(line);
      words >> names.emplace_back();
      if (names.back().ends_with(',')) names.back().pop_back();  // an alias follows
    } else {
      below = line == "Subcommands:";
    }
  }
  return names;
}

void ExpectDescribed(const std::vector<std::string>& command, const std::string& reference) {
  std::vector<std::string> args = command;
  args.push_back("--help");
  const std::string help = RunAttune(args).out;
  const std::vector<std::string> subcommands = Subcommands(help);
  if (!command.empty() && subcommands.empty()) {
    std::string heading = "`attune";
    for (const std::string& word : command) heading += ' ' + word;
    EXPECT_TRUE(reference.find(heading) != std::string::npos) << heading;
  }
  for (const std::string& flag : Flags(help)) {
    EXPECT_TRUE(reference.find('`' + flag) != std::string::npos) << flag;
  }
  for (const std::string& name : subcommands) {
    std::vector<std::string> next = command;
    next.push_back(name);
    ExpectDescribed(next, reference);
  }
}

TEST(Reference, MentionsEveryCommandAndFlagOfHelp) {
  EXPECT_FALSE(Subcommands(RunAttune({"--help"}).out).empty());
  ExpectDescribed({}, Reference());
}

}  // namespace
}  // namespace attune::cli
