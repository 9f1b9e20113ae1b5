#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sweepfile/codec.h"
#include "tests/unit/sweepfile/harness.h"

namespace attune::sweepfile {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string WithLogPatterns(const std::string& on_log) {
  return "command: [/bin/true]\nmetric: {name: loss, mode: min}\nparameters: {}\n"
         "scheduler: {max: 3}\nstop: {max_trials: 1}\nfailure: {on_log: " +
         on_log + "}\n";
}

TEST(OnLog, ReadsPoliciesInOrder) {
  const SweepSpec spec = Spec(WithLogPatterns(
      "[{pattern: 'ECC|Xid', action: exclude_host}, {pattern: NCCL, action: retry_elsewhere}, "
      "{pattern: out of memory, action: fail}]"));
  EXPECT_THAT(spec.failure.on_log, ElementsAre(LogPolicy{"ECC|Xid", LogAction::kExcludeHost},
                                               LogPolicy{"NCCL", LogAction::kRetryElsewhere},
                                               LogPolicy{"out of memory", LogAction::kFail}));
  EXPECT_EQ(SpecFromJson(ToJson(spec)).value(), spec);
}

TEST(OnLog, LocatesFaultsOfPolicies) {
  ExpectGolden(
      "sweepfile/on_log",
      ExpectFaults({{"yes", "6:19: failure.on_log: "},
                    {"[{pattern: x}]", "6:20: failure.on_log[0].action: "},
                    {"[{pattern: x, action: stop}]", "6:41: failure.on_log[0].action: "},
                    {"[{pattern: '', action: fail}]", "6:30: failure.on_log[0].pattern: "},
                    {"[{pattern: '(', action: fail}]", "6:30: failure.on_log[0].pattern: "},
                    {"[{pattern: x, action: fail}, {pattern: x, action: fail}]",
                     "6:58: failure.on_log[1].pattern: "}},
                   WithLogPatterns));
}

TEST(OnLog, ReportsAWrongPatternWithAWrongAction) {
  const std::string faults = FaultsOf(WithLogPatterns("[{pattern: '(', action: retry}]"));
  EXPECT_THAT(faults, HasSubstr("failure.on_log[0].pattern: "));
  EXPECT_THAT(faults, HasSubstr("failure.on_log[0].action: "));
}

TEST(OnLog, LimitsPolicies) {
  std::string policies;
  for (size_t i = 0; i <= kMaxLogPolicies; ++i)
    policies +=
        (i == 0 ? "[" : ", ") + std::string("{pattern: p") + std::to_string(i) + ", action: fail}";
  EXPECT_THAT(FaultsOf(WithLogPatterns(policies + "]")),
              AllOf(StartsWith("sweep.yaml:6:11: failure.on_log: "), HasSubstr(" 32 ")));
}

}  // namespace
}  // namespace attune::sweepfile
