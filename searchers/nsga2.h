#pragma once

#include <cstdint>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/searcher.h"
#include "core/base/random.h"
#include "searchers/model/population.h"

namespace attune::searchers {

// Evolution towards a whole front: NSGA-II (Deb et al., IEEE Transactions on Evolutionary
// Computation 6, 2002), in its steady state (Durillo et al., "On the effect of the steady-state
// selection scheme in multi-objective genetic algorithms", EMO 2009).
//
// The Population is the best trials (BestOf), proposed by anyone. Each trial that ends may replace
// the last one at once, so no worker waits for a generation. A proposal has two parents. Each is
// the better of two trials drawn at random. Numbers are crossed between the parents, and one
// parameter is mutated (searchers/model/variation.h). Parameters that neither parent has are drawn
// at random. Failed trials are never parents.
//
// In a finite space nothing is proposed twice, and the search ends when everything was proposed.
class Nsga2 final : public Searcher {
 public:
  // REQUIRES: options within the bounds of Nsga2Entry(); with earlier results one objective.
  explicit Nsga2(const SweepSpec& spec);

  Suggestion Suggest(ProposalNumber proposal) const override;
  void Observe(const Event& event) override { population_.Observe(event); }
  void Adapt(const SweepSpec& spec) override { population_.Adapt(spec); }
  void Save(ArchiveWriter& archive) const override { population_.Save(archive); }
  void Load(ArchiveReader& archive) override { population_.Load(archive); }

 private:
  struct Parents {
    uint32_t mother = 0;
    uint32_t father = 0;
  };

  // Sets the father to the mother if the child has nothing from him.
  Config Child(Parents& parents, RandomStream& random) const;
  uint32_t Parent(RandomStream& random) const;

  uint64_t seed_;
  Population population_;
};

Entry<Searcher> Nsga2Entry();

}  // namespace attune::searchers
