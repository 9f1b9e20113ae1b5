#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/base/random.h"

namespace attune::benchmarks {

// A geometric mean and its 95 % interval, of 2,000 bootstrap samples.
struct GeometricMean {
  double mean, low, high;
};

// Of numbers whose logarithms these are, one a problem. REQUIRES: one at least.
inline GeometricMean GeometricMeanOf(const std::vector<double>& logs) {
  constexpr int kSamples = 2000;
  const auto count = static_cast<double>(logs.size());
  RandomStream random(1, TrialNumber(0), "bootstrap");
  std::vector<double> samples;
  for (int i = 0; i < kSamples; ++i) {
    double sum = 0;
    for (size_t j = 0; j < logs.size(); ++j) {
      sum += logs[static_cast<size_t>(random.Integer(0, std::ssize(logs) - 1))];
    }
    samples.push_back(sum / count);
  }
  std::ranges::sort(samples);
  const double sum = std::accumulate(logs.begin(), logs.end(), 0.0);
  return {std::exp(sum / count), std::exp(samples[kSamples / 40]),
          std::exp(samples[kSamples - 1 - kSamples / 40])};
}

}  // namespace attune::benchmarks
