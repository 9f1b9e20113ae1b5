#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "searchers/register.h"

namespace attune::benchmarks {

// A searcher in a program of one's own, without a server: ask for a configuration, tell how good it
// was. All that it takes is attune::searchers.
//
//   AskTell tuner(space, "tpe", /*seed=*/7);
//   for (int i = 0; i < 100; ++i) {
//     const auto trial = tuner.Ask();
//     if (!trial) break;  // nothing is left to try
//     tuner.Tell(trial->number, Loss(trial->config));
//   }
//
// Small is good. With several objectives a trial is told all of them, and there is no best trial
// but a front of them. Trials may be told in any order, and several may be out at a time. A
// searcher's state is saved and loaded by Searcher::Save and Load.
class AskTell {
 public:
  struct Trial {
    uint32_t number = 0;
    Config config;
  };

  // REQUIRES: there is a searcher of this name, and it takes the space. Its options are the
  // defaults of its table.
  AskTell(const SearchSpace& space, const std::string& searcher, uint64_t seed,
          size_t objectives = 1) {
    Algorithms algorithms;
    searchers::RegisterSearchers(algorithms);
    std::vector<Objective> losses;
    for (size_t i = 0; i < objectives; ++i) losses.push_back(Minimise(Name(i)));
    SweepSpec spec{.objectives = std::move(losses),
                   .space = space,
                   .searcher = {.name = searcher},
                   .seed = seed};
    algorithms.Complete(spec);
    searcher_ = algorithms.MakeSearcher(spec).value();
  }

  // Nullopt when there is nothing left to propose.
  std::optional<Trial> Ask() {
    Suggestion suggestion = searcher_->Suggest(ProposalNumber(next_));
    auto* config = std::get_if<Config>(&suggestion);
    if (config == nullptr) return std::nullopt;
    Observe(TrialCreated{.trial = Id(next_), .config = *config, .proposal = ProposalNumber(next_)});
    return Trial{next_++, std::move(*config)};
  }

  // NaN says that the trial failed.
  void Tell(uint32_t trial, double loss) { Tell(trial, std::vector<double>{loss}); }
  void Tell(uint32_t trial, const std::vector<double>& losses) {
    Metrics metrics;
    for (size_t i = 0; i < losses.size(); ++i) metrics[Name(i)] = losses[i];
    Observe(TrialReported{{Id(trial), 1}, {Step(1), std::move(metrics)}});
    Observe(TrialEnded{Id(trial), TrialState::kCompleted, ""});
  }

 private:
  static std::string Name(size_t objective) { return "loss" + std::to_string(objective); }
  static TrialId Id(uint32_t trial) { return {SweepId(1), TrialNumber(trial)}; }
  void Observe(Fact fact) { searcher_->Observe({EventSeq(++events_), Time{0}, std::move(fact)}); }

  std::unique_ptr<Searcher> searcher_;
  uint32_t next_ = 0;
  uint64_t events_ = 0;
};

}  // namespace attune::benchmarks
