#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "searchers/ask_tell.h"

namespace attune::benchmarks {

// searchers::AskTell for losses without names. All losses are minimised.
class AskTell {
 public:
  using Trial = searchers::AskTell::Trial;

  // REQUIRES: there is a searcher with this name, and it supports the space, and `warm_start` if it
  // is not empty. The searcher has its default options.
  AskTell(const SearchSpace& space, const std::string& searcher, uint64_t seed,
          size_t objectives = 1, std::vector<WarmStart> warm_start = {})
      : tuner_(searchers::AskTell::Make(space.parameters(), {.searcher = searcher,
                                                             .seed = seed,
                                                             .objectives = Objectives(objectives),
                                                             .warm_start = std::move(warm_start)})
                   .value()) {}

  // Nullopt when the searcher is exhausted.
  std::optional<Trial> Ask() { return tuner_.Ask(); }

  // NaN means that the trial failed.
  void Tell(uint32_t trial, double loss) { Tell(trial, std::vector<double>{loss}); }
  void Tell(uint32_t trial, const std::vector<double>& losses) {
    ATTUNE_CHECK(tuner_.Tell(trial, MetricsOf(losses)).ok());
  }

  // The names of the losses.
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
