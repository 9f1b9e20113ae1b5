#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sweepfile/codec.h"
#include "tests/unit/sweepfile/harness.h"

namespace attune::sweepfile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string WithLogPatterns(const std::string& on_log) {
  return "command: [/bin/true]\nmetric: {name: loss, mode: min}\nparameters: {}\n"
         "scheduler: {max: 3}\nstop: {max_trials: 1}\nfailure: {on_log: " +
         on_log + "}\n";
}

TEST(OnLog, PoliciesAreReadInTheirOrderAndComeBackFromTheResolvedFile) {
  const SweepSpec spec = Spec(WithLogPatterns(
      "[{pattern: 'ECC|Xid', action: exclude_host}, {pattern: NCCL, action: retry_elsewhere}, "
      "{pattern: out of memory, action: fail}]"));
  EXPECT_THAT(spec.failure.on_log, ElementsAre(LogPolicy{"ECC|Xid", LogAction::kExcludeHost},
                                               LogPolicy{"NCCL", LogAction::kRetryElsewhere},
                                               LogPolicy{"out of memory", LogAction::kFail}));
  EXPECT_EQ(SpecFromJson(ToJson(spec)).value(), spec);
}

TEST(OnLog, WhatIsWrongWithAPolicyIsToldWhereItStands) {
  const std::pair<const char*, const char*> cases[] = {
      {"yes", "sweep.yaml:6:19: failure.on_log: expected a list such as [{pattern: \"CUDA error\""},
      {"[{pattern: x}]", "sweep.yaml:6:20: failure.on_log[0].action: missing"},
      {"[{pattern: x, action: stop}]", "sweep.yaml:6:41: failure.on_log[0].action: "},
      {"[{pattern: '', action: fail}]", "sweep.yaml:6:30: failure.on_log[0].pattern: is empty"},
      {"[{pattern: '(', action: fail}]",
       "sweep.yaml:6:30: failure.on_log[0].pattern: is no regular expression in the syntax of RE2"},
      {"[{pattern: x, action: fail}, {pattern: x, action: fail}]",
       "sweep.yaml:6:58: failure.on_log[1].pattern: stands here twice"},
  };
  for (const auto& [policies, fault] : cases)
    EXPECT_THAT(FaultsOf(WithLogPatterns(policies)), StartsWith(fault));
}

TEST(OnLog, AWrongActionHidesNoWrongPattern) {
  const std::string faults = FaultsOf(WithLogPatterns("[{pattern: '(', action: retry}]"));
  EXPECT_THAT(faults, HasSubstr("failure.on_log[0].pattern: is no regular expression"));
  EXPECT_THAT(faults, HasSubstr("failure.on_log[0].action: "));
}

TEST(OnLog, ThereAreNotMoreThanTheLimit) {
  std::string policies;
  for (size_t i = 0; i <= kMaxLogPolicies; ++i)
    policies +=
        (i == 0 ? "[" : ", ") + std::string("{pattern: p") + std::to_string(i) + ", action: fail}";
  EXPECT_THAT(FaultsOf(WithLogPatterns(policies + "]")),
              StartsWith("sweep.yaml:6:11: failure.on_log: has more than 32 patterns"));
}

}  // namespace
}  // namespace attune::sweepfile
