#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "searchers/ask_tell.h"

namespace attune::benchmarks {

// searchers::AskTell for losses without names, each of which is good where it is small.
class AskTell {
 public:
  using Trial = searchers::AskTell::Trial;

  // REQUIRES: there is a searcher of this name, and it takes the space and results of earlier
  // sweeps where there are some. Its options are the defaults of its table.
  AskTell(const SearchSpace& space, const std::string& searcher, uint64_t seed,
          size_t objectives = 1, std::vector<WarmStart> warm_start = {})
      : tuner_(searchers::AskTell::Make(space.parameters(), {.searcher = searcher,
                                                             .seed = seed,
                                                             .objectives = Objectives(objectives),
                                                             .warm_start = std::move(warm_start)})
                   .value()) {}

  // Nullopt when there is nothing left to propose.
  std::optional<Trial> Ask() { return tuner_.Ask(); }

  // NaN says that the trial failed.
  void Tell(uint32_t trial, double loss) { Tell(trial, std::vector<double>{loss}); }
  void Tell(uint32_t trial, const std::vector<double>& losses) {
    ATTUNE_CHECK(tuner_.Tell(trial, MetricsOf(losses)).ok());
  }

  // What it calls them.
  static std::vector<Objective> Objectives(size_t count) {
    std::vector<Objective> objectives;
    for (size_t i = 0; i < count; ++i) objectives.push_back(Minimise(Name(i)));
    return objectives;
  }
  static Metrics MetricsOf(const std::vector<double>& losses) {
    Metrics metrics;
    for (size_t i = 0; i < losses.size(); ++i) metrics[Name(i)] = losses[i];
    return metrics;
  }

 private:
  static std::string Name(size_t objective) { return "loss" + std::to_string(objective); }

  searchers::AskTell tuner_;
};

}  // namespace attune::benchmarks
