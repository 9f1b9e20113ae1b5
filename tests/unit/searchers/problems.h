#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "tests/unit/searchers/history.h"

namespace attune::searchers {

// A sweep with one loss and this searcher, which has its default options.
inline SweepSpec SpecOf(const Entry<Searcher>& entry, std::vector<Parameter> parameters,
                        uint64_t seed = 1) {
  SweepSpec spec{.objectives = {Minimise("loss")},
                 .space = SearchSpace(std::move(parameters)),
                 .searcher = {.name = entry.name, .options = {}},
                 .seed = seed};
  Algorithms table;
  table.Add(entry);
  table.Complete(spec);
  return spec;
}

inline double Real(const Config& config, std::string_view name) {
  return std::get<double>(*config.Find(name));
}

inline Config Ask(const Searcher& searcher, uint32_t proposal) {
  return std::get<Proposed>(searcher.Suggest(ProposalNumber(proposal))).config;
}

inline std::vector<Parameter> Plane() {
  return {{"x", FloatDomain{.min = -5, .max = 5}}, {"y", FloatDomain{.min = -5, .max = 5}}};
}

// A loss over a plane: 0 at (2, -1).
inline double Bowl(const Config& config) {
  return std::pow(Real(config, "x") - 2, 2) + std::pow(Real(config, "y") + 1, 2);
}

// Runs up to `trials` trials and returns the smallest loss. A trial with a loss of NaN fails.
// Workers report in the order in which they asked.
template <class LossOf>
double BestOf(Searcher& searcher, uint32_t trials, LossOf loss, uint32_t workers = 1) {
  History history(searcher);
  std::vector<Config> configs;
  double best = std::numeric_limits<double>::infinity();
  for (uint32_t told = 0; told < trials; ++told) {
    while (configs.size() < std::min(trials, told + workers)) {
      const ProposalNumber next(static_cast<uint32_t>(configs.size()));
      const Suggestion suggestion = searcher.Suggest(next);
      if (!std::holds_alternative<Proposed>(suggestion)) break;
      configs.push_back(std::get<Proposed>(suggestion).config);
      history.Create(configs.back(), next);
    }
    if (told == configs.size()) break;
    const double value = loss(configs[told]);
    best = std::min(best, value);
    history.Report(told, {{"loss", value}});
    history.End(told, std::isnan(value) ? TrialState::kFailed : TrialState::kCompleted);
  }
  return best;
}

}  // namespace attune::searchers
