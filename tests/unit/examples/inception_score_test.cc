#include "examples/dcgan/inception_score.h"

#include <gtest/gtest.h>

namespace dcgan {
namespace {

using Probabilities = std::vector<double>;

TEST(InceptionScore, IsTheNumberOfClassesForClearAndVariedImages) {
  InceptionScore score(4);
  for (int y = 0; y < 4; ++y) {
    Probabilities certain(4);
    certain[y] = 1;
    score.Add(certain);
  }
  EXPECT_DOUBLE_EQ(score.Value(), 4);
}

TEST(InceptionScore, IsOneForEqualOrUnclearImages) {
  InceptionScore alike(2), nothing(2);
  for (int i = 0; i < 3; ++i) {
    alike.Add(Probabilities{1, 0});
    nothing.Add(Probabilities{0.5, 0.5});
  }
  EXPECT_DOUBLE_EQ(alike.Value(), 1);
  EXPECT_DOUBLE_EQ(nothing.Value(), 1);
}

TEST(InceptionScore, IsExpOfTheMeanDivergence) {
  InceptionScore score(2);
  score.Add(Probabilities{0.9, 0.1});
  score.Add(Probabilities{0.3, 0.7});
  const double first = 0.9 * std::log(0.9 / 0.6) + 0.1 * std::log(0.1 / 0.4);
  const double second = 0.3 * std::log(0.3 / 0.6) + 0.7 * std::log(0.7 / 0.4);
  EXPECT_NEAR(score.Value(), std::exp((first + second) / 2), 1e-12);
}

TEST(InceptionScore, AddsUpTheSumsOfWorkers) {
  InceptionScore all(2), one(2), other(2);
  for (auto* score : {&all, &one}) score->Add(Probabilities{0.9, 0.1});
  for (auto* score : {&all, &other}) score->Add(Probabilities{0.3, 0.7});
  for (std::size_t i = 0; i < one.sums().size(); ++i) one.sums()[i] += other.sums()[i];
  EXPECT_DOUBLE_EQ(one.Value(), all.Value());
}

}  // namespace
}  // namespace dcgan
