#include "sweepfile/keys.h"
#include "tests/unit/sweepfile/harness.h"

namespace attune::sweepfile {
namespace {

using ::testing::HasSubstr;

TEST(Reports, AreReadByAPatternThatHasTheMetrics) {
  const std::string rest =
      "command: [train]\nmetric: {name: loss, mode: min}\nstop: {max_trials: 1}\n"
      "parameters: {n: {value: 1}}\nconstraints: {ms: {max: 9}}\nreports:\n  pattern: ";
  const std::string pattern = R"(epoch (?P<step>\d+) loss=(?P<loss>\S+) (?P<ms>\d+) ms)";
  EXPECT_EQ(Spec(rest + "'" + pattern + "'\n").program.report_pattern, pattern);

  const std::pair<const char*, const char*> cases[] = {
      {"'(?P<loss>'", "is no regular expression in the syntax of RE2: missing )"},
      {R"('(?P<loss>\d+) \1')", "is no regular expression in the syntax of RE2: invalid escape"},
      {R"('loss=(\S+)')", "has no group (?P<loss>…) for the metric loss; it has none with a name"},
      {R"('(?P<loss>\S+)')", "has no group (?P<ms>…) for the metric ms; it has loss"},
      {"''", "is empty"},
  };
  for (const auto& [value, message] : cases) {
    EXPECT_THAT(FaultsOf(rest + value + "\n"),
                HasSubstr(std::string("sweep.yaml:7:12: reports.pattern: ") + message));
  }
  const std::string groups = "(?P<loss>.)(?P<ms>.)";
  const std::string longest = std::string(kMaxPatternBytes - groups.size(), 'x') + groups;
  EXPECT_EQ(Spec(rest + longest + "\n").program.report_pattern, longest);
  EXPECT_THAT(FaultsOf(rest + "x" + longest + "\n"), HasSubstr("longer than 1000 bytes"));
}

TEST(Reports, AMetricThatCannotBeAGroupHasNoPattern) {
  const std::string rest =
      "command: [train]\nstop: {max_trials: 1}\nparameters: {n: {value: 1}}\n"
      "reports: {pattern: '(?P<step>.)'}\n";
  for (const char* name : {"val/loss", "step"}) {
    EXPECT_THAT(FaultsOf(rest + "metric: {name: " + name + ", mode: min}\n"),
                HasSubstr(std::string("the metric ") + name + " cannot be the name of a group"));
  }
}

TEST(Reports, WithoutAPatternSayNothing) {
  EXPECT_EQ(FaultsOf(With("reports: {}\n")),
            "sweep.yaml:5:1: reports: says nothing; give pattern, or remove it\n");
}

}  // namespace
}  // namespace attune::sweepfile
