#pragma once

#include <cstdint>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/searcher.h"
#include "core/base/random.h"
#include "searchers/model/population.h"

namespace attune::searchers {

// Ageing evolution (Real et al., "Regularized evolution for image classifier architecture search",
// AAAI 2019).
//
// The Population is the `population` trials that ended last, with any result and proposed by
// anyone: a lucky result does not survive for ever. A proposal is the best (BestOf) of `tournament`
// trials drawn from them, with one parameter mutated (searchers/model/variation.h). Parameters that
// exist only with the new value are drawn at random.
//
// In a finite space nothing is proposed twice, and the search ends when everything was proposed.
class Evolution final : public Searcher {
 public:
  // REQUIRES: options within the bounds of EvolutionEntry(); with earlier results one objective.
  explicit Evolution(const SweepSpec& spec);

  Suggestion Suggest(ProposalNumber proposal) const override;
  void Observe(const Event& event) override { population_.Observe(event); }
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override { population_.Save(archive); }
  void Load(ArchiveReader& archive) override { population_.Load(archive); }

 private:
  Config Child(uint32_t parent, RandomStream& random) const;
  uint32_t Parent(RandomStream& random) const;

  int64_t tournament_;
  uint64_t seed_;
  Population population_;
};

Entry<Searcher> EvolutionEntry();

}  // namespace attune::searchers
