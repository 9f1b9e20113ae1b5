#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "searchers/ask_tell.h"

namespace attune::benchmarks {

// searchers::AskTell for losses without names, each of which is good where it is small.
class AskTell {
 public:
  using Trial = searchers::AskTell::Trial;

  // REQUIRES: there is a searcher of this name, and it takes the space. Its options are the
  // defaults of its table.
  AskTell(const SearchSpace& space, const std::string& searcher, uint64_t seed,
          size_t objectives = 1)
      : tuner_(searchers::AskTell::Make(
                   space.parameters(),
                   {.searcher = searcher, .seed = seed, .objectives = Losses(objectives)})
                   .value()) {}

  // Nullopt when there is nothing left to propose.
  std::optional<Trial> Ask() { return tuner_.Ask(); }

  // NaN says that the trial failed.
  void Tell(uint32_t trial, double loss) { Tell(trial, std::vector<double>{loss}); }
  void Tell(uint32_t trial, const std::vector<double>& losses) {
    Metrics metrics;
    for (size_t i = 0; i < losses.size(); ++i) metrics[Name(i)] = losses[i];
    ATTUNE_CHECK(tuner_.Tell(trial, metrics).ok());
  }

 private:
  static std::string Name(size_t objective) { return "loss" + std::to_string(objective); }
  static std::vector<Objective> Losses(size_t count) {
    std::vector<Objective> losses;
    for (size_t i = 0; i < count; ++i) losses.push_back(Minimise(Name(i)));
    return losses;
  }

  searchers::AskTell tuner_;
};

}  // namespace attune::benchmarks
