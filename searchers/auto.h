#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/searcher.h"

namespace attune::searchers {

// Chooses among the other searchers by what the sweep is, and hands over from one to the next as
// results come. Each proposal says which one made it, and why that one.
//
// In a stage of several they propose in turns. Each learns from what the others proposed, and where
// the model of one misleads it, another one goes on.
//
// All that a sweep will ever need observe from its beginning, so that the next one knows what the
// one before has found out. Those of stages that are over are forgotten.
class Auto final : public Searcher {
 public:
  // Some of the other searchers, until there are so many results: ends of trials, but not by
  // failing, and pauses at the scheduler's rungs. 0: to the end.
  struct Stage {
    std::vector<std::string> searchers;  // in turns, by the number of the proposal
    int64_t until = 0;
    std::string reason;
  };
  // At least one, the last one to the end. The same for a sweep whose ranges were edited.
  static std::vector<Stage> StagesFor(const SweepSpec& spec);

  // REQUIRES: AutoEntry() makes one of this spec.
  explicit Auto(const SweepSpec& spec);

  Suggestion Suggest(ProposalNumber proposal) const override;
  bool Thinks() const override;
  void Observe(const Event& event) override;
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;

 private:
  const Stage& stage() const { return stages_[0]; }
  // On to the stage that so many results are for.
  void HandOver();

  std::vector<Stage> stages_;                                   // this one and those to come
  std::map<std::string, std::unique_ptr<Searcher>> searchers_;  // of these, by their names
  int64_t results_ = 0;
};

Entry<Searcher> AutoEntry();

}  // namespace attune::searchers
