#pragma once

#include "core/algorithms/algorithms.h"
#include "core/algorithms/searcher.h"
#include "searchers/model/cube.h"
#include "searchers/model/sobol_sequence.h"
#include "searchers/model/tried.h"

namespace attune::searchers {

// Quasi-random search: proposal n is point n of a scrambled Sobol sequence
// (searchers/model/sobol_sequence.h). The points cover each parameter and each pair of parameters
// evenly, while random draws leave holes and clusters. The coverage is best after 2^m proposals.
//
// Values have the same probabilities as in random search. The coordinate of an absent parameter is
// not used. Results are not used. In a finite space nothing is proposed twice: if a point of the
// sequence was tried, a random one is drawn. The search ends when everything was proposed.
class Sobol final : public Searcher {
 public:
  Sobol(SearchSpace space, uint64_t seed);

  Suggestion Suggest(ProposalNumber proposal) const override;
  void Observe(const Event& event) override { tried_.Observe(event, cube_); }
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override { tried_.Save(archive); }
  void Load(ArchiveReader& archive) override { tried_.Load(archive); }

 private:
  uint64_t seed_;
  Cube cube_;
  SobolSequence sequence_;
  TriedConfigs tried_;
};

Entry<Searcher> SobolEntry();

}  // namespace attune::searchers
