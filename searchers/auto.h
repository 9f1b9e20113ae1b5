#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/searcher.h"

namespace attune::searchers {

// Chooses other searchers from the properties of the sweep, in stages: a stage ends after a number
// of results. Each proposal says which searcher made it, and why that searcher was chosen.
//
// If a stage has several searchers, they propose in turns. Each learns from the proposals of the
// others, so one with a misleading model does not hold up the search.
//
// The searchers of all stages observe the sweep from its start, so each knows all results when its
// stage begins. A searcher is deleted when no remaining stage needs it.
class Auto final : public Searcher {
 public:
  // A result is a trial that ended without failing, or a pause at a rung of the scheduler.
  struct Stage {
    std::vector<std::string> searchers;  // they take turns, by the number of the proposal
    int64_t until = 0;                   // number of results that ends the stage; 0: never
    std::string reason;
  };
  // At least one stage; the last one never ends. An edit of the ranges does not change the result.
  static std::vector<Stage> StagesFor(const SweepSpec& spec);

  // REQUIRES: AutoEntry() accepts the spec.
  explicit Auto(const SweepSpec& spec);

  Suggestion Suggest(ProposalNumber proposal) const override;
  bool NeedsThread() const override;
  void Observe(const Event& event) override;
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;

 private:
  const Stage& stage() const { return stages_[0]; }
  // Removes the stages that the number of results has ended, with their searchers.
  void DropFinishedStages();

  std::vector<Stage> stages_;                                   // the current one and later ones
  std::map<std::string, std::unique_ptr<Searcher>> searchers_;  // of these stages, by name
  int64_t results_ = 0;
};

Entry<Searcher> AutoEntry();

}  // namespace attune::searchers
