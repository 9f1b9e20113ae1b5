#include "searchers/model/untried.h"

#include <utility>

namespace attune::searchers {

Suggestion ProposeUntried(const Cube& cube, const std::function<bool(const Config&)>& is_tried,
                          const std::function<Config(int)>& propose,
                          const std::function<Rationale(int, const Config&)>& explain) {
  for (int attempt = 0; attempt < kModelAttempts + kRandomAttempts; ++attempt) {
    Config config = propose(attempt);
    if (cube.IsFinite() && is_tried(config)) continue;
    Rationale rationale =
        attempt < kModelAttempts
            ? explain(attempt, config)
            : Rationale{.rule = "random", .text = "drawn at random: the model's points were tried"};
    return Proposed{std::move(config), std::move(rationale)};
  }
  auto left = cube.FindFirst([&](const Config& config) { return !is_tried(config); });
  if (!left) return Exhausted{"every configuration of the space has been proposed"};
  return Proposed{*std::move(left),
                  {.rule = "remaining", .text = "the first configuration that was not tried"}};
}

Suggestion ProposeUntried(const Record& record, const std::function<Config(int)>& propose,
                          const std::function<Rationale(int, const Config&)>& explain) {
  const Cube& cube = record.cube();
  return ProposeUntried(
      cube, [&](const Config& config) { return record.HasTried(cube.Place(config).value()); },
      propose, explain);
}

}  // namespace attune::searchers
