#include "searchers/model/untried.h"

#include <utility>

namespace attune::searchers {

Suggestion Untried(const Record& record, const std::function<Config(int)>& propose,
                   const std::function<Rationale(int, const Config&)>& explain) {
  const Cube& cube = record.cube();
  const auto is_new = [&](const Config& config) {
    return !record.Tried(cube.Place(config).value());
  };
  for (int attempt = 0; attempt < kModelAttempts + kRandomAttempts; ++attempt) {
    Config config = propose(attempt);
    if (cube.Finite() && !is_new(config)) continue;
    Rationale rationale =
        attempt < kModelAttempts
            ? explain(attempt, config)
            : Rationale{.rule = "random", .text = "drawn at random: what it would try was tried"};
    return Proposed{std::move(config), std::move(rationale)};
  }
  auto left = cube.FirstThat(is_new);
  if (!left) return Exhausted{"every configuration of the space has been proposed"};
  return Proposed{*std::move(left),
                  {.rule = "remaining", .text = "the first configuration that nobody has tried"}};
}

}  // namespace attune::searchers
