#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "core/base/random.h"
#include "schedulers/asha.h"
#include "schedulers/progression.h"
#include "tests/support/golden.h"
#include "tests/unit/schedulers/harness.h"

namespace attune::schedulers {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

Asha Progressive(int64_t max = 27, int64_t min = 1) {
  const Ladder ladder({.min = Step(min), .max = Step(max), .reduction_factor = 3});
  return Asha(Minimise("loss"), ladder, Asha::Form::kPromote,
              std::make_unique<Progression>(ladder.steps()), "pasha");
}

SweepSpec Spec(int64_t max) {
  return {.objectives = {Minimise("loss")},
          .scheduler = {.name = "pasha",
                        .options = {{"min", int64_t{1}}, {"reduction_factor", int64_t{3}}}},
          .max_step = Step(max)};
}

// Rungs 1, 3, 9 with a third promoted, worked out by hand from algorithm 1 of the paper: one
// worker, whose every free slot asks what to run.
TEST(Pasha, FollowsThePaper) {
  SchedulerHarness sweep(Progressive(9), "loss");
  sweep.Report({0, 1}, 0.5).Report({1, 1}, 0.6);
  EXPECT_THAT(sweep.Report({2, 1}, 0.4).verdict(), Continues());  // the best of three
  EXPECT_THAT(sweep.Report({2, 3}, 0.38).verdict(), Pauses());
  EXPECT_EQ(sweep.verdict().reason.rung, Step(3));
  EXPECT_EQ(sweep.verdict().reason.rank, 1);
  const std::string paused = sweep.text();
  sweep.Report({3, 1}, 0.9).Report({4, 1}, 0.9);
  EXPECT_THAT(sweep.Report({5, 1}, 0.9).verdict(), Pauses());
  EXPECT_THAT(sweep.Promoted(), Optional(0u));  // the second of six
  EXPECT_THAT(sweep.Report({0, 3}, 0.45).verdict(), Pauses());
  EXPECT_EQ(sweep.Promoted(), std::nullopt);
  sweep.Report({6, 1}, 0.9).Report({7, 1}, 0.9);
  EXPECT_THAT(sweep.Report({8, 1}, 0.9).verdict(), Pauses());
  EXPECT_THAT(sweep.Promoted(), Optional(1u));  // the third of nine
  // ASHA would now promote trial 2, the best of three at rung 3; but they rank as they did.
  EXPECT_THAT(sweep.Report({1, 3}, 0.55).verdict(), Pauses());
  EXPECT_EQ(sweep.Promoted(), std::nullopt);
  sweep.Report({9, 1}, 0.9).Report({10, 1}, 0.9);
  EXPECT_THAT(sweep.Report({11, 1}, 0.42).verdict(), Continues());
  // From the second place to the first: the next rung opens.
  EXPECT_THAT(sweep.Report({11, 3}, 0.3).verdict(), Pauses());
  EXPECT_THAT(sweep.Promoted(), Optional(11u));
  EXPECT_EQ(sweep.promotion().rung, Step(3));
  EXPECT_THAT(sweep.Report({11, 9}, 0.2).verdict(), Continues());
  EXPECT_EQ(sweep.verdict().reason.rung, Step(9));
  testing::ExpectGolden("schedulers/pasha", paused + "\n" + sweep.text() + "\n");
}

TEST(Pasha, EndsASweepWithStableRankings) {
  SchedulerHarness sweep(Progressive(), "loss");
  sweep.Report({0, 1}, 0.5).Report({1, 1}, 0.6).Report({2, 1}, 0.4).Report({2, 3}, 0.3);
  const NextMove move = sweep.Next(/*may_create=*/false);
  ASSERT_TRUE(std::holds_alternative<Done>(move));
  EXPECT_THAT(std::get<Done>(move).text, HasSubstr("step 3"));
}

TEST(Pasha, TrialsAtTheHighestOpenRungBlockNoOthers) {
  SchedulerHarness sweep(Progressive(), "loss");
  for (const uint32_t trial : {0, 1, 2}) sweep.Report({trial, 3}, 0.5);
  EXPECT_THAT(sweep.Report({3, 1}, 0.5).verdict(), Pauses());
  sweep.Report({4, 1}, 0.5);
  EXPECT_THAT(sweep.Report({5, 1}, 0.4).verdict(), Continues())
      << "its slot is not for those of rung 3";
}

TEST(Pasha, TrainsLessThanAshaIfEarlyValuesAreRight) {
  const auto steps = [](Asha scheduler) {
    SchedulerHarness sweep(std::move(scheduler), "loss");
    std::map<uint32_t, int64_t> at;
    int64_t trained = 0;
    for (uint32_t next = 0; next < 81;) {
      const auto promoted = sweep.Promoted();
      const uint32_t trial = promoted ? *promoted : next++;
      do {
        ++trained;
        const auto step = static_cast<double>(++at[trial]);
        sweep.Report({trial, at[trial]}, (trial * 37 % 81) + 1 / step);
      } while (sweep.verdict().kind == VerdictKind::kContinue && at[trial] < 81);
    }
    return trained;
  };
  const int64_t asha =
      steps(Asha(Minimise("loss"), Ladder({Step(1), Step(81), 3}), Asha::Form::kPromote));
  EXPECT_LT(2 * steps(Progressive(81)), asha);
}

TEST(Pasha, IsTheSameAfterARestartAtAnyReport) {
  const auto run = [](int restart_every) {
    SchedulerHarness sweep(Progressive(), "loss");
    RandomStream random(5, ProposalNumber(0), "test");
    std::string texts;
    int reports = 0;
    std::map<uint32_t, int64_t> at;
    for (uint32_t next = 0; next < 60;) {
      const auto promoted = sweep.Promoted();
      const uint32_t trial = promoted ? *promoted : next++;
      texts += " " + std::to_string(trial);
      do {
        const auto step = static_cast<double>(++at[trial]);
        sweep.Report({trial, at[trial]},
                     (1 + trial % 7) / std::sqrt(step) + 0.3 * random.Uniform());
        texts += sweep.text();
        if (restart_every > 0 && ++reports % restart_every == 0) sweep.Restore(Progressive());
      } while (sweep.verdict().kind == VerdictKind::kContinue && at[trial] < 27);
    }
    return texts;
  };
  const std::string plain = run(0);
  EXPECT_EQ(run(1), plain);
  EXPECT_EQ(run(5), plain);
  EXPECT_THAT(plain, HasSubstr("at rung 9"));
  EXPECT_THAT(plain, Not(HasSubstr("completes"))) << "it has been stable at some rung";
}

TEST(Pasha, ForgetsTheReportsOfATrialThatHasEnded) {
  SchedulerHarness sweep(Progressive(27'000, 1000), "loss");
  const size_t empty = sweep.Bytes();
  for (const uint32_t trial : {0, 1}) {
    for (int64_t step = 1; step <= 1000; ++step) sweep.Report({trial, step}, 0.5);
  }
  EXPECT_GT(sweep.Bytes(), empty + 32'000);
  sweep.End(0);
  sweep.End(1);
  EXPECT_LT(sweep.Bytes(), empty + 200);
}

TEST(Pasha, AnEditOfMaxKeepsRungsOpen) {
  SchedulerHarness sweep(Progressive(), "loss");
  for (const uint32_t trial : {0, 1, 2}) sweep.Report({trial, 1}, 0.5 - 0.1 * trial);
  sweep.Report({2, 3}, 0.5);
  for (const uint32_t trial : {3, 4, 5}) sweep.Report({trial, 1}, 0.9);
  ASSERT_THAT(sweep.Promoted(), Optional(1u));
  sweep.Report({1, 3}, 0.3);  // before trial 2: rung 9 is open
  sweep.Adapt(Spec(81));
  EXPECT_THAT(sweep.Rungs(), ::testing::ElementsAre(1, 3, 9, 27, 81));
  sweep.Report({6, 3}, 0.9);
  EXPECT_THAT(sweep.Promoted(), Optional(1u));
}

TEST(Pasha, RequiresMax) {
  EXPECT_THAT(PashaEntry().make(Spec(0)).error().message, ::testing::StartsWith("scheduler.max: "));
}

}  // namespace
}  // namespace attune::schedulers
