#include "sweepfile/keys.h"
#include "tests/unit/sweepfile/harness.h"

namespace attune::sweepfile {
namespace {

using ::testing::HasSubstr;

TEST(Reports, RequireAPatternThatHasTheMetrics) {
  const std::string rest =
      "command: [train]\nmetric: {name: loss, mode: min}\nstop: {max_trials: 1}\n"
      "parameters: {n: {value: 1}}\nconstraints: {ms: {max: 9}}\nreports:\n  pattern: ";
  const std::string pattern = R"(epoch (?P<step>\d+) loss=(?P<loss>\S+) (?P<ms>\d+) ms)";
  EXPECT_EQ(Spec(rest + "'" + pattern + "'\n").program.report_pattern, pattern);

  ExpectGolden("sweepfile/reports",
               ExpectFaults({{"'(?P<loss>'", "7:12: reports.pattern: "},
                             {R"('(?P<loss>\d+) \1')", "7:12: reports.pattern: "},
                             {R"('loss=(\S+)')", "7:12: reports.pattern: "},
                             {R"('(?P<loss>\S+)')", "7:12: reports.pattern: "},
                             {"''", "7:12: reports.pattern: "}},
                            [&](const std::string& value) { return rest + value + "\n"; }));
  const std::string groups = "(?P<loss>.)(?P<ms>.)";
  const std::string longest = std::string(kMaxPatternBytes - groups.size(), 'x') + groups;
  EXPECT_EQ(Spec(rest + longest + "\n").program.report_pattern, longest);
  EXPECT_THAT(FaultsOf(rest + "x" + longest + "\n"),
              HasSubstr("reports.pattern: longer than 1000 "));
}

TEST(Reports, RefuseAPatternForAMetricThatCannotBeAGroup) {
  const std::string rest =
      "command: [train]\nstop: {max_trials: 1}\nparameters: {n: {value: 1}}\n"
      "reports: {pattern: '(?P<step>.)'}\n";
  for (const char* name : {"val/loss", "step"}) {
    EXPECT_THAT(FaultsOf(rest + "metric: {name: " + name + ", mode: min}\n"),
                HasSubstr(std::string("reports.pattern: the metric ") + name));
  }
}

TEST(Reports, RefuseAnEmptyMap) { EXPECT_EQ(PlacesOf(With("reports: {}\n")), "5:1 reports\n"); }

}  // namespace
}  // namespace attune::sweepfile
