#include "searchers/model/fronts.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/searchers/history.h"

namespace attune::searchers {
namespace {

using ::testing::ElementsAre;

SweepSpec SpecOf(size_t objectives) {
  SweepSpec spec{.space = SearchSpace({{"x", FloatDomain{.min = 0, .max = 1}}})};
  spec.objectives.clear();
  for (size_t i = 0; i < objectives; ++i)
    spec.objectives.push_back(Minimise(std::string(1, "abcd"[i])));
  return spec;
}

std::vector<uint32_t> Best(const Record& record, size_t count, FrontOrder order) {
  std::vector<uint32_t> trials(record.size());
  std::iota(trials.begin(), trials.end(), 0u);
  std::ranges::sort(trials, [&](uint32_t a, uint32_t b) { return record.Better(a, b); });
  return BestOf(record, trials, count, order);
}

class Fronts : public ::testing::Test {
 protected:
  explicit Fronts(size_t objectives = 2) : record_(SpecOf(objectives)) {}

  void Done(std::vector<double> values, TrialState state = TrialState::kCompleted) {
    const uint32_t trial = history_.Create({{"x", 0.5}});
    Metrics metrics;
    for (size_t i = 0; i < values.size(); ++i) metrics[std::string(1, "abcd"[i])] = values[i];
    history_.Report(trial, metrics);
    history_.End(trial, state);
  }

  Record record_;
  History<Record> history_{record_};
};

TEST_F(Fronts, UndominatedTrialsComeFirst) {
  Done({2, 2});
  Done({1, 1});
  Done({3, 3});
  EXPECT_THAT(Best(record_, 3, FrontOrder::kHypervolume), ElementsAre(1, 0, 2));
}

TEST_F(Fronts, TheLaterOfEqualTrialsIsInTheNextFront) {
  Done({1, 1});
  Done({1, 1});
  Done({0, 2});
  EXPECT_THAT(Best(record_, 3, FrontOrder::kCrowding), ElementsAre(2, 0, 1));
}

// Scaled: (0, 1), (0.1, 0.4), (0.5, 0.3), (1, 0). Alone they add (0.1·0.1), (0.4·0.6), (0.5·0.1)
// and (0.1·0.3).
TEST_F(Fronts, RanksAFrontByAddedVolume) {
  Done({0, 10});
  Done({1, 4});
  Done({5, 3});
  Done({10, 0});
  EXPECT_THAT(Best(record_, 4, FrontOrder::kHypervolume), ElementsAre(1, 2, 3, 0));
}

TEST_F(Fronts, RanksAFrontByCrowding) {
  Done({0, 10});
  Done({1, 9});
  Done({2, 8});
  Done({6, 3});
  Done({10, 0});
  EXPECT_THAT(Best(record_, 5, FrontOrder::kCrowding), ElementsAre(0, 4, 3, 2, 1));
}

TEST_F(Fronts, RanksCompletedTrialsBeforeUnfinishedAndFailedOnes) {
  Done({0, 0}, TrialState::kFailed);
  Done({0, 0}, TrialState::kStopped);
  Done({5, 5});
  Done({6, 6});
  EXPECT_THAT(Best(record_, 4, FrontOrder::kHypervolume), ElementsAre(2, 3, 1, 0));
}

TEST_F(Fronts, AcceptsTheLargestNumbers) {
  Done({1e308, -1e308});
  Done({-1e308, 1e308});
  Done({0, 0});
  EXPECT_THAT(Best(record_, 3, FrontOrder::kCrowding), ElementsAre(1, 0, 2));
}

class ThreeObjectives : public Fronts {
 protected:
  ThreeObjectives() : Fronts(3) {}
};

TEST_F(ThreeObjectives, ATrialAloneInAnObjectiveAddsMost) {
  Done({0, 1, 1});
  Done({1, 0, 1});
  Done({1, 0.05, 0.9});
  Done({1, 1, 0});
  // The second shares nearly all of what it has with the third.
  EXPECT_EQ(Best(record_, 4, FrontOrder::kHypervolume).back(), 1u);
}

}  // namespace
}  // namespace attune::searchers
