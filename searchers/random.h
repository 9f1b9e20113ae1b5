#pragma once

#include <cstdint>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/searcher.h"
#include "core/space/search_space.h"
#include "searchers/model/cube.h"
#include "searchers/model/tried.h"

namespace attune::searchers {

// Random search (Bergstra and Bengio, JMLR 13, 2012): every trial is drawn from the space by itself
// and takes nothing from the others' results.
//
// A range is drawn uniformly, with `scale: log` uniformly in the logarithm; with steps, integers
// included, every step is a possible value and its probability on a log scale is the share of the
// interval up to the next step. Listed values are equally likely. Parents are drawn before the
// parameters that depend on them; parameters that do not exist beside them are not drawn.
//
// Each parameter has a random stream of its own, so adding one to a space leaves the others' values
// as they were. In a finite space it proposes nothing twice, and it is exhausted when everything
// has been proposed.
class Random final : public Searcher {
 public:
  Random(SearchSpace space, uint64_t seed);

  Suggestion Suggest(ProposalNumber proposal) const override;
  void Observe(const Event& event) override { tried_.Observe(event, cube_); }
  void Adapt(const SweepSpec& spec) override { cube_ = Cube(spec.space); }
  void Save(ArchiveWriter& archive) const override { tried_.Save(archive); }
  void Load(ArchiveReader& archive) override { tried_.Load(archive); }

 private:
  Config DrawConfig(ProposalNumber proposal, int attempt) const;

  Cube cube_;
  uint64_t seed_;
  TriedConfigs tried_;
};

Entry<Searcher> RandomEntry();

}  // namespace attune::searchers
