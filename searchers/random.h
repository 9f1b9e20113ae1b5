#pragma once

#include <cstdint>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/searcher.h"
#include "core/space/search_space.h"

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
// as they were. Never exhausted.
class Random final : public Searcher {
 public:
  Random(SearchSpace space, uint64_t seed);

  Suggestion Suggest(ProposalNumber proposal) const override;
  void Observe(const Event&) override {}
  void Adapt(const SweepSpec& spec) override { space_ = spec.space; }
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}

 private:
  SearchSpace space_;
  uint64_t seed_;
};

Entry<Searcher> RandomEntry();

}  // namespace attune::searchers
