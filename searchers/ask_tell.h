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

// A searcher in a program of one's own, without a server: ask for a configuration, tell how good it
// was. All that it takes is attune::searchers, which is the standard library and nothing else.
//
//   auto tuner = AskTell::Make({{"lr", FloatDomain{.min = 1e-4, .max = 1, .scale = Scale::kLog}}},
//                              {.searcher = "tpe", .objectives = {Minimise("loss")}});
//   if (!tuner.ok()) …  // tuner.error().message says what is wrong with it
//   for (int i = 0; i < 100; ++i) {
//     const auto trial = tuner->Ask();
//     if (!trial) break;  // nothing is left to try
//     const auto told = tuner->Tell(trial->number, Loss(trial->config));  // ok: it was out
//   }
//   const auto best = tuner->best();
//
// Trials may be told in any order, and several may be out at a time. The same calls give the same
// trials, on every x86-64 machine. One thread at a time.
class AskTell {
 public:
  struct Options {
    std::string searcher = "tpe";          // a name of docs/reference/searchers.md
    std::map<std::string, Value> options;  // its own; those that are not here are its defaults
    uint64_t seed = 0;
    std::vector<Objective> objectives = {Minimise("loss")};
    std::vector<Constraint> constraints;
    // Results of earlier searches, each of one of whose spaces this one has the parameters; taken
    // as core/log/warm_start.h says. Of searchers that begin with such
    // (docs/reference/searchers.md).
    std::vector<WarmStart> warm_start = {};
  };

  struct Trial {
    uint32_t number = 0;  // from 0
    Config config;
    Rationale rationale;  // why this configuration
  };

  // One of the best results: with one objective the best, with several those that no other
  // dominates.
  struct Best {
    uint32_t trial = 0;
    Config config;
    std::vector<double> values;  // of the objectives, in their order
  };

  // kInvalid: a range, an option or an objective is wrong, or the searcher cannot serve them; the
  // message names all that is.
  static Result<AskTell> Make(std::vector<Parameter> parameters, Options options);

  // The next trial; nullopt where there is none, and `reason` says why.
  std::optional<Trial> Ask();
  const std::string& reason() const { return reason_; }

  // A trial of one's own, from which the searcher learns like from any other. kInvalid: the
  // configuration is not one of the space.
  Result<Trial> Add(const Config& config);

  // What has become of a trial: its metrics, or the value of the one objective. NaN, or a metric
  // that is missing, says that it failed. kNotFound: no such trial is out. REQUIRES: with a value,
  // one objective.
  Status Tell(uint32_t trial, const Metrics& metrics);
  Status Tell(uint32_t trial, double value);

  std::vector<Best> best() const;

  // Everything so far, as bytes, and back into one that was made with the same arguments by the
  // same version. kCorrupt: they are none of those, and nothing has changed.
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
  std::map<uint32_t, Config> out_;    // trials that were not told yet
  std::map<uint32_t, Config> front_;  // configurations of the best
  Front best_;
  std::string reason_;
};

}  // namespace attune::searchers
