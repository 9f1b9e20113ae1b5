#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/searcher.h"
#include "core/base/random.h"
#include "searchers/model/adapted_normal.h"
#include "searchers/model/record.h"

namespace attune::searchers {

// Evolution strategy with covariance matrix adaptation: CMA-ES (Hansen, arXiv:1604.00772; the
// distribution and its other sources: searchers/model/adapted_normal.h).
//
// Proposals are drawn from a normal distribution over the numeric parameters, each on its scale.
// Whenever `population` more trials have ended, it learns from their ranks (Record::Better). Failed
// trials rank last, whatever they reported.
//
// - No trial waits for a generation to be complete, so any number may be pending. Trials of an
// older
//   generation and trials from other sources are used as injected points.
// - A draw outside a range is repeated a few times, and is then clamped to the range.
// - For an integer or a step it learns from the number that was drawn, not from the middle of the
//   cell. Neighbouring cells keep a minimum probability.
// - Each listed value has a probability, which moves towards the values of the better half (Baluja,
//   "Population-based incremental learning", CMU-CS-94-163). It also has a minimum.
// - A parameter that is absent from a configuration keeps the number that was drawn for it, which
//   adds noise to the ranks. If most of a population lack it, its mean and deviation do not change.
// - When the search has converged or stalled, it restarts elsewhere with twice the population
// (Auger
//   and Hansen, "A restart CMA evolution strategy with increasing population size", CEC 2005).
// - In a finite space nothing is proposed twice, and the search ends when everything was proposed.
//
// A generation costs population · n² + n³/6 operations; above 100 dimensions, population · n.
class Cmaes final : public Searcher {
 public:
  struct Options {
    int64_t population = 0;  // 0: 4 + 3·ln(dimensions)
    double initial_step = 0.15;
    bool operator==(const Options&) const = default;
  };

  // REQUIRES: one objective; options within the bounds of CmaesEntry().
  explicit Cmaes(const SweepSpec& spec);

  Suggestion Suggest(ProposalNumber proposal) const override;
  void Observe(const Event& event) override;
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;

 private:
  // The point that was drawn for a proposal, before it was moved to the middle of its cell.
  struct DrawnPoint {
    Point point;
    uint64_t generation = 0;
    template <class A>
    friend void Fields(A& archive, Like<A, DrawnPoint>& drawn) {
      archive(drawn.point, drawn.generation);
    }
  };

  // The population of the first run.
  size_t Population() const;
  // Only the numeric dimensions of `mean` are used.
  void StartRun(Point mean, size_t population, double step);
  // Starts from the good results of earlier sweeps.
  void StartWarmRun();
  double StepOf(const Point& deviation) const;
  void RestartElsewhere();
  Rationale Explain() const;
  Suggestion Draw(ProposalNumber proposal, Point& drawn) const;
  Point Sample(RandomStream& random) const;
  void Learn();
  void LearnLists(const std::vector<uint32_t>& best_first);
  // Adds the best value of a generation. Returns whether the run has converged or makes no
  // progress.
  bool HasStalled(const std::vector<uint32_t>& best_first);

  Options options_;
  uint64_t seed_;
  Record record_;
  std::vector<size_t> numeric_;             // dimensions that are not lists
  AdaptedNormal normal_;                    // over the numeric dimensions
  std::vector<std::vector<double>> lists_;  // by dimension: probabilities of a list's values
  uint64_t generation_ = 0;
  uint64_t run_start_ = 0;  // the first generation of the run
  uint32_t restarts_ = 0;
  std::vector<double> bests_;             // the best values of the last generations of the run
  std::vector<uint32_t> finished_;        // trials for the next call of Learn
  std::map<uint32_t, DrawnPoint> drawn_;  // by trial, until Learn has used it
};

Entry<Searcher> CmaesEntry();

}  // namespace attune::searchers
