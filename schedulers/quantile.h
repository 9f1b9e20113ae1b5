#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace attune::schedulers {

// Interpolated linearly between neighbours. REQUIRES: values is not empty; 0 <= share <= 1.
inline double Quantile(std::vector<double> values, double share) {
  const double place = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(place);
  const auto at = values.begin() + static_cast<ptrdiff_t>(low);
  std::ranges::nth_element(values, at);
  if (low + 1 == values.size()) return *at;
  const double above = *std::min_element(at + 1, values.end());
  return *at + (place - static_cast<double>(low)) * (above - *at);
}

}  // namespace attune::schedulers
