#pragma once

#include <cstdint>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/searcher.h"
#include "core/base/random.h"
#include "searchers/model/prior.h"
#include "searchers/model/record.h"

namespace attune::searchers {

// Evolution towards a whole front: NSGA-II (Deb et al., IEEE Transactions on Evolutionary
// Computation 6, 2002), in its steady state (Durillo et al., "On the effect of the steady-state
// selection scheme in multi-objective genetic algorithms", EMO 2009).
//
// The population is the best that there are (BestOf, by crowding), whoever proposed them: each
// trial that ends may take the place of the last one at once, so that no worker waits for a
// generation. A proposal has two parents, the better one each of two drawn at random: numbers are
// crossed between them and one parameter is mutated (searchers/model/variation.h); where no parent
// has a parameter it is drawn at random. Until `population` trials have ended, proposals are a
// FirstPopulation's. Failed trials are never parents.
//
// In a finite space nothing is proposed twice, and it is exhausted when all has been proposed.
class Nsga2 final : public Searcher {
 public:
  // REQUIRES: options within the bounds of Nsga2Entry(); with earlier results one objective.
  explicit Nsga2(const SweepSpec& spec);

  Suggestion Suggest(ProposalNumber proposal) const override;
  void Observe(const Event& event) override;
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;

 private:
  struct Parents {
    uint32_t mother = 0;
    uint32_t father = 0;
  };

  Parents ParentsOf(RandomStream& random) const;
  // The father is the mother where nothing is of him.
  Config Child(Parents& parents, RandomStream& random) const;
  uint32_t Parent(RandomStream& random) const;
  void Select();  // who stays

  size_t size_;  // of the population
  uint64_t seed_;
  Record record_;
  FirstPopulation first_;
  std::vector<uint32_t> population_;  // the best first
};

Entry<Searcher> Nsga2Entry();

}  // namespace attune::searchers
