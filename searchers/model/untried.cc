#include "searchers/model/untried.h"

namespace attune::searchers {

Suggestion Untried(const Record& record, const std::function<Config(int)>& propose) {
  const Cube& cube = record.cube();
  const auto is_new = [&](const Config& config) {
    return !record.Tried(cube.Place(config).value());
  };
  for (int attempt = 0; attempt < kModelAttempts + kRandomAttempts; ++attempt) {
    const Config config = propose(attempt);
    if (!cube.Finite() || is_new(config)) return config;
  }
  const auto left = cube.FirstThat(is_new);
  if (!left) return Exhausted{"every configuration of the space has been proposed"};
  return *left;
}

}  // namespace attune::searchers
