#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/algorithms/searcher.h"
#include "core/base/random.h"
#include "searchers/model/prior.h"
#include "searchers/model/record.h"
#include "searchers/model/sobol_sequence.h"

namespace attune::searchers {

// The population of an evolutionary searcher: the trials that may become parents, and the record of
// the sweep.
//
// Until the population is complete, proposals are points of a Sobol sequence. With results of
// earlier sweeps, the best of each sweep comes first, and then draws near the good ones alternate
// with points of the sequence: children are seldom far from their parents, and what was good in
// another sweep may not be good here.
class Population {
 public:
  enum class Keeps {
    kNewest,  // the trials that ended last, with any result; in the order in which they ended
    kBest,    // the best ones of those that have not failed; the best first
  };
  // REQUIRES: the searcher of the spec has the option `population`.
  Population(const SweepSpec& spec, Keeps keeps);

  const Record& record() const { return record_; }
  const std::vector<uint32_t>& trials() const { return trials_; }
  // The best of the trials, the best first, by crowding.
  std::vector<uint32_t> BestOf(std::vector<uint32_t> trials, size_t count) const;

  // Proposes a child if the population is complete, and a start point otherwise. `condition`
  // completes the sentence "until N trials". `breed` makes a child, and `explain` describes the
  // child that it made last.
  Suggestion Suggest(ProposalNumber proposal, RandomStream random, const std::string& condition,
                     const std::function<Config(RandomStream&)>& breed,
                     const std::function<Rationale(const Config&)>& explain) const;

  void Observe(const Event& event);
  void Adapt(const SweepSpec& spec);
  void Save(ArchiveWriter& archive) const;
  void Load(ArchiveReader& archive);

 private:
  bool IsAdmitted(uint32_t trial) const;
  void Trim();
  // Whether the proposal repeats the best trial of an earlier sweep, in any population.
  bool RepeatsPrior(ProposalNumber proposal) const { return proposal.value < prior_.best().size(); }
  // Whether it is drawn near the good trials of earlier sweeps.
  bool IsNearPrior(ProposalNumber proposal) const;
  ProposalNumber PointOf(ProposalNumber proposal) const;
  Config ProposeStart(ProposalNumber proposal, int attempt, RandomStream& random) const;
  Rationale ExplainStart(ProposalNumber proposal, int attempt, const std::string& until) const;

  Keeps keeps_;
  size_t capacity_;
  Record record_;
  Prior prior_;
  SobolSequence sobol_;
  std::vector<uint32_t> trials_;
};

}  // namespace attune::searchers
