#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/random.h"
#include "simulator/simulation.h"
#include "tests/conformance/whole_sweep.h"

// A sweep that runs one round of HyperBand must match the table of algorithm 1 in the paper (Li et
// al., JMLR 2018). Bracket s starts n = ⌈(s_max+1)·η^s/(s+1)⌉ trials. The best ⌊n/η^i⌋ trials at
// the previous rung reach step ⌊R·η^(i-s)⌋.
namespace attune::conformance {
namespace {

struct Round {
  int64_t max, factor;
  std::vector<std::string> brackets;  // trials@step, worked out by hand
};

// s_max = ⌊log_η R⌋ is 4, 4, 5, 3, 3, 2. Floating-point logarithms give 4 for (243, 3), 2 for
// (1000, 10), and 3.0000000000000004 for (125, 5).
const std::vector<Round> kRounds = {
    // ⌈5·81/5⌉, ⌈5·27/4⌉, ⌈5·9/3⌉, ⌈5·3/2⌉, 5
    {81,
     3,
     {"81@1 27@3 9@9 3@27 1@81", "34@3 11@9 3@27 1@81", "15@9 5@27 1@81", "8@27 2@81", "5@81"}},
    // The same numbers of trials, because ⌊log₃ 100⌋ = 4, at 100/81, 100/27, 100/9 and 100/3 steps.
    {100,
     3,
     {"81@1 27@3 9@11 3@33 1@100", "34@3 11@11 3@33 1@100", "15@11 5@33 1@100", "8@33 2@100",
      "5@100"}},
    // ⌈6·243/6⌉, ⌈6·81/5⌉, ⌈6·27/4⌉, ⌈6·9/3⌉, ⌈6·3/2⌉, 6
    {243,
     3,
     {"243@1 81@3 27@9 9@27 3@81 1@243", "98@3 32@9 10@27 3@81 1@243", "41@9 13@27 4@81 1@243",
      "18@27 6@81 2@243", "9@81 3@243", "6@243"}},
    // ⌈4·1000/4⌉, ⌈4·100/3⌉, ⌈4·10/2⌉, 4
    {1000, 10, {"1000@1 100@10 10@100 1@1000", "134@10 13@100 1@1000", "20@100 2@1000", "4@1000"}},
    // ⌈4·125/4⌉, ⌈4·25/3⌉, ⌈4·5/2⌉, 4
    {125, 5, {"125@1 25@5 5@25 1@125", "34@5 6@25 1@125", "10@25 2@125", "4@125"}},
    // ⌈3·16/3⌉, ⌈3·4/2⌉, 3
    {16, 4, {"16@1 4@4 1@16", "6@4 1@16", "3@16"}},
};

double LossAt(uint32_t trial, int64_t step) {
  return RandomStream(7, TrialNumber(trial), "loss/" + std::to_string(step)).Uniform();
}

// Curves that rank the trials differently at every step.
class NoiseCurves final : public simulate::Curves {
 public:
  double ValueAt(TrialNumber trial, const Config&, Step step) const override {
    return LossAt(trial.value, step.value);
  }
};

struct Level {
  int64_t trials, step;
};

std::vector<Level> Levels(const std::string& bracket) {
  std::vector<Level> levels;
  std::istringstream words(bracket);
  Level level{};
  for (char at = 0; words >> level.trials >> at >> level.step;) levels.push_back(level);
  return levels;
}

// Runs lines 3 to 11 of algorithm 1 on the trials from `first` on, and sets how far each of them
// trains.
void RunBracket(uint32_t first, const std::vector<Level>& levels, std::vector<int64_t>& furthest) {
  std::vector<uint32_t> trials(static_cast<size_t>(levels.front().trials));
  for (size_t i = 0; i < trials.size(); ++i) trials[i] = first + static_cast<uint32_t>(i);
  furthest.resize(first + trials.size());
  for (const Level& level : levels) {
    const int64_t before = &level == &levels.front() ? 1 : (&level - 1)->step;
    std::ranges::sort(trials, {}, [&](uint32_t trial) { return LossAt(trial, before); });
    trials.resize(static_cast<size_t>(level.trials));  // top_k
    for (const uint32_t trial : trials) furthest[trial] = level.step;
  }
}

void ExpectMatchesTable(const Round& round, int slots) {
  SCOPED_TRACE("R " + std::to_string(round.max) + ", η " + std::to_string(round.factor) + ", " +
               std::to_string(slots) + " slots");
  std::vector<int64_t> expected;
  for (const std::string& bracket : round.brackets)
    RunBracket(static_cast<uint32_t>(expected.size()), Levels(bracket), expected);

  const Plan plan{.scheduler = "hyperband",
                  .options = {{"reduction_factor", round.factor}},
                  .max = round.max,
                  .trials = static_cast<int>(expected.size())};
  std::vector<int64_t> furthest(expected.size());
  const auto summary = simulate::Simulate(
      plan.Spec(), AllAlgorithms(), NoiseCurves(), {.slots = slots}, [&](const Event& event) {
        if (const auto* reported = std::get_if<TrialReported>(&event.fact)) {
          int64_t& step = furthest[reported->attempt.trial.number.value];
          step = std::max(step, reported->report.step.value);
        }
      });
  ASSERT_TRUE(summary.ok()) << summary.error().message;
  EXPECT_EQ(furthest, expected);

  auto trial = furthest.begin();
  for (const std::string& bracket : round.brackets) {
    const std::vector<Level> levels = Levels(bracket);
    const auto next = trial + levels.front().trials;
    std::string table;
    for (const Level& level : levels) {
      const auto reached =
          std::count_if(trial, next, [&](int64_t step) { return step >= level.step; });
      table +=
          (table.empty() ? "" : " ") + std::to_string(reached) + "@" + std::to_string(level.step);
    }
    EXPECT_EQ(table, bracket);
    trial = next;
  }
}

TEST(HyperBandTable, RoundsMatchThePaperWithOneTrialAtATime) {
  for (const Round& round : kRounds) ExpectMatchesTable(round, 1);
}

TEST(HyperBandTable, RoundsMatchThePaperWithConcurrentTrials) {
  for (const Round& round : kRounds) ExpectMatchesTable(round, 12);
}

}  // namespace
}  // namespace attune::conformance
