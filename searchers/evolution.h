#pragma once

#include <cstdint>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/searcher.h"
#include "core/base/random.h"
#include "searchers/model/prior.h"
#include "searchers/model/record.h"

namespace attune::searchers {

// Ageing evolution (Real et al., "Regularized evolution for image classifier architecture search",
// AAAI 2019).
//
// The population is the `population` trials that ended last, whoever proposed them and however they
// did: a lucky result does not live on for ever. A proposal is the best of `tournament` drawn from
// them (BestOf), with one parameter mutated (searchers/model/variation.h); what exists only beside
// its new value is drawn at random. Until the population is complete, proposals are a
// FirstPopulation's.
//
// In a finite space nothing is proposed twice, and it is exhausted when all has been proposed.
class Evolution final : public Searcher {
 public:
  struct Options {
    int64_t population = 20;
    int64_t tournament = 10;
  };

  // REQUIRES: options within the bounds of EvolutionEntry(); with earlier results one objective.
  explicit Evolution(const SweepSpec& spec);

  Suggestion Suggest(ProposalNumber proposal) const override;
  void Observe(const Event& event) override;
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;

 private:
  Config Child(uint32_t parent, RandomStream& random) const;
  uint32_t Parent(RandomStream& random) const;
  void Retire();  // those that are too old

  Options options_;
  uint64_t seed_;
  Record record_;
  FirstPopulation first_;
  std::vector<uint32_t> population_;  // in the order in which they ended
};

Entry<Searcher> EvolutionEntry();

}  // namespace attune::searchers
