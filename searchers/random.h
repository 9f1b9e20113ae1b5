#pragma once

#include <cstdint>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/searcher.h"
#include "core/space/search_space.h"
#include "searchers/model/cube.h"
#include "searchers/model/tried.h"

namespace attune::searchers {

// Random search (Bergstra and Bengio, JMLR 13, 2012): draws each trial independently and does not
// use results.
//
// A range is drawn uniformly; with `scale: log`, uniformly in the logarithm. In a range with steps,
// and for integers, each step is a possible value. On a log scale its probability is the share of
// the interval up to the next step. Listed values are equally likely. Parents are drawn before the
// parameters that depend on them. Absent parameters are not drawn.
//
// Each parameter has a separate random stream, so a new parameter does not change the values of the
// others. In a finite space nothing is proposed twice, and the search ends when everything was
// proposed.
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
