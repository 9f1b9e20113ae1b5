#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/algorithms/searcher.h"
#include "core/space/front.h"
#include "core/space/objective.h"
#include "core/space/search_space.h"

namespace attune::searchers {

// Runs a searcher inside your program, without a server: ask for a configuration, evaluate it, and
// tell its result. It needs only attune::searchers, which depends on nothing but the standard
// library.
//
//   auto tuner = AskTell::Make({{"lr", FloatDomain{.min = 1e-4, .max = 1, .scale = Scale::kLog}}},
//                              {.searcher = "tpe", .objectives = {Minimise("loss")}});
//   if (!tuner.ok()) …  // tuner.error().message names each fault
//   for (int i = 0; i < 100; ++i) {
//     const auto trial = tuner->Ask();
//     if (!trial) break;  // nothing is left to try
//     const auto status = tuner->Tell(trial->number, Loss(trial->config));
//   }
//   const auto best = tuner->best();
//
// Several trials may be pending at a time, and results may be told in any order. The same calls
// give the same trials on every x86-64 machine. Not thread-safe.
class AskTell {
 public:
  struct Options {
    std::string searcher = "tpe";          // a name of docs/reference/searchers.md
    std::map<std::string, Value> options;  // of the searcher; absent ones have their defaults
    uint64_t seed = 0;
    std::vector<Objective> objectives = {Minimise("loss")};
    std::vector<Constraint> constraints;
    // Results of earlier searches over the same parameters (core/log/warm_start.h). Only for
    // searchers that support a warm start (docs/reference/searchers.md).
    std::vector<WarmStart> warm_start = {};
  };

  struct Trial {
    uint32_t number = 0;  // from 0
    Config config;
    Rationale rationale;  // why this configuration
  };

  // A best result: with one objective the best one, with several each one on the Pareto front.
  struct Best {
    uint32_t trial = 0;
    Config config;
    std::vector<double> values;  // of the objectives, in their order
  };

  // kInvalid: a parameter, an option or an objective is wrong, or the searcher does not support
  // them. The message names every fault.
  static Result<AskTell> Make(std::vector<Parameter> parameters, Options options);

  // Returns the next trial. If there is none, returns nullopt and sets reason().
  std::optional<Trial> Ask();
  const std::string& reason() const { return reason_; }

  // Creates a trial with a configuration that you chose. The searcher learns from it as from any
  // other. kInvalid: the configuration is not in the space.
  Result<Trial> Add(const Config& config);

  // Ends a trial with its metrics, or with the value of the only objective. NaN or a missing metric
  // means that the trial failed. kNotFound: no such trial is pending. REQUIRES for a value: there
  // is one objective.
  Status Tell(uint32_t trial, const Metrics& metrics);
  Status Tell(uint32_t trial, double value);

  std::vector<Best> best() const;

  // Saves the whole state, and restores it. Load accepts only bytes that were saved by an object
  // with the same arguments and the same version. kCorrupt: other bytes; the state is unchanged.
  std::string Save() const;
  Status Load(std::string_view bytes);

 private:
  AskTell(SweepSpec spec, std::unique_ptr<Searcher> searcher);

  Trial Create(Config config, Rationale rationale, std::optional<ProposalNumber> proposal);
  void Observe(Fact fact);

  SweepSpec spec_;
  std::unique_ptr<Searcher> searcher_;
  uint32_t trials_ = 0;
  uint32_t proposals_ = 0;
  uint64_t events_ = 0;
  std::map<uint32_t, Config> pending_;  // trials without a result
  std::map<uint32_t, Config> front_;    // configurations of the best
  Front best_;
  std::string reason_;
};

}  // namespace attune::searchers
