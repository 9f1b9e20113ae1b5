#pragma once

#include "core/algorithms/algorithms.h"
#include "core/algorithms/searcher.h"
#include "searchers/model/cube.h"
#include "searchers/model/sobol_sequence.h"
#include "searchers/model/tried.h"

namespace attune::searchers {

// Quasi-random search: the points of a scrambled Sobol sequence (searchers/model/sobol_sequence.h),
// proposal n being point n. They fill the space evenly, in every parameter by itself and in pairs
// of them, where random draws leave holes and clusters; best after 2^m proposals. Values are as
// likely as in random search; a parameter that does not exist beside its parents leaves its
// coordinate unused. Takes nothing from results. In a finite space it proposes nothing twice: if a
// point of the sequence was tried, it draws at random. It is exhausted when everything has been
// proposed.
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
