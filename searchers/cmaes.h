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
// Proposals are drawn from a normal distribution over the numeric parameters on their scales. Each
// time that a population of trials has ended, whichever they are, it learns from them by their rank
// (Record::Better), so that failed ones are the worst whatever they reported.
//
// - Nobody waits for a generation to be complete: any number of trials may be out. What comes late,
//   from an older generation, and trials of others' are learned from as injected points.
// - Draws outside of a range are drawn again, some times, and then brought to its end.
// - Integers and steps keep what was drawn within the cell, and a margin that neighbours are tried.
// - Of listed values each has a chance, which moves towards those of the better half (Baluja,
//   "Population-based incremental learning", CMU-CS-94-163), with a margin likewise.
// - A parameter that does not exist beside the others keeps the draw that was made of it, which is
//   noise among the ranks. Where most of a population lack it, its mean and deviation stay.
// - Where nothing moves any more it begins again elsewhere with twice the population (Auger and
//   Hansen, "A restart CMA evolution strategy with increasing population size", CEC 2005).
// - In a finite space nothing is proposed twice, and it is exhausted when all has been proposed.
//
// A generation costs population · n² + n³/6 operations, above 100 dimensions population · n.
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
  // What stood behind a proposal: the draw before it was brought into its cell.
  struct Drawn {
    Point point;
    uint64_t generation = 0;
    template <class A>
    friend void Fields(A& archive, Like<A, Drawn>& drawn) {
      archive(drawn.point, drawn.generation);
    }
  };

  size_t Population() const;                             // that of the first run
  void StartRun(Point at, size_t population, double step);  // a run; of `at` numeric dimensions count
  void StartWarmRun();                                      // from results of earlier sweeps
  double StepOf(const Point& deviation) const;
  void RestartElsewhere();  // elsewhere
  Rationale Explain() const;
  Suggestion Draw(ProposalNumber proposal, Point& drawn) const;
  Point Sample(RandomStream& random) const;
  void Learn();
  void LearnLists(const std::vector<uint32_t>& best_first);
  bool HasStalled(const std::vector<uint32_t>& best_first);  // nothing moves any more

  Options options_;
  uint64_t seed_;
  Record record_;
  std::vector<size_t> numeric_;             // dimensions that are no lists
  AdaptedNormal normal_;                    // over these
  std::vector<std::vector<double>> lists_;  // by dimension, chances of the values; else empty
  uint64_t generation_ = 0;
  uint64_t run_start_ = 0;  // the generation that the run began with
  uint32_t runs_ = 0;
  std::vector<double> bests_;        // of the last generations of the run
  std::vector<uint32_t> finished_;   // trials to learn from
  std::map<uint32_t, Drawn> drawn_;  // by trial, until it is learned from
};

Entry<Searcher> CmaesEntry();

}  // namespace attune::searchers
