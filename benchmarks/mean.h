#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/base/random.h"

namespace attune::benchmarks {

// A mean and its 95 % confidence interval from 2,000 bootstrap samples.
struct Mean {
  double mean, low, high;
};

// REQUIRES: at least one value.
inline Mean MeanOf(const std::vector<double>& values) {
  constexpr int kSamples = 2000;
  const auto count = static_cast<double>(values.size());
  RandomStream random(1, TrialNumber(0), "bootstrap");
  std::vector<double> samples;
  for (int i = 0; i < kSamples; ++i) {
    double sum = 0;
    for (size_t j = 0; j < values.size(); ++j) {
      sum += values[static_cast<size_t>(random.Integer(0, std::ssize(values) - 1))];
    }
    samples.push_back(sum / count);
  }
  std::ranges::sort(samples);
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {sum / count, samples[kSamples / 40], samples[kSamples - 1 - kSamples / 40]};
}

// The geometric mean of numbers, from their logarithms.
inline Mean GeometricMeanOf(const std::vector<double>& logs) {
  const auto [mean, low, high] = MeanOf(logs);
  return {std::exp(mean), std::exp(low), std::exp(high)};
}

}  // namespace attune::benchmarks
