#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/log/suggestion.h"
#include "core/log/warm_start.h"
#include "searchers/model/cube.h"
#include "searchers/model/parzen.h"
#include "searchers/model/sobol_sequence.h"

namespace attune::searchers {

class Record;

// Where the results of earlier sweeps were good, as a density: of the best fifth of each, 25 of all
// together. What a sweep believes before it has results of its own, and the less the more it has.
//
// A density beside a model, instead of results in it, takes nothing for granted of the values of
// two sweeps, and a belief that was wrong is outvoted soon (priors over the optimum: Souza et al.,
// "Bayesian Optimization with a Prior for the Optimum", ECML 2021; Hvarfner et al., "πBO:
// Augmenting Acquisition Functions with User Beliefs for Bayesian Optimization", ICLR 2022).
class Prior {
 public:
  Prior() = default;
  explicit Prior(const Record& record);

  bool empty() const { return best_.empty(); }

  // The best result of each earlier sweep, sweep after sweep: tried before anything else. With
  // several metrics it is the first of the sweep's front, whose others draws come near: to repeat
  // four of them brought no more (docs/benchmarks.md).
  const std::vector<PriorResult>& best() const { return best_; }

  // The mean of the good ones, better ones weighing more, and how far they lie from it (the root of
  // the mean square), by dimension. NaN: none of them has it; of a list, always.
  struct Middle {
    Point mean;
    Point deviation;
  };
  Middle MiddleOf(const Cube& cube) const;

  // Of the parameters that exist together: null where none of the good ones has them.
  const RankedParzen* Of(size_t group) const {
    return groups_[group].good ? &*groups_[group].good : nullptr;
  }

  // Of a point, over all groups that it has; and its derivatives by dimension, 0 by lists.
  double LogDensity(const Point& point) const;
  std::vector<double> Slope(const Point& point) const;

  // The likeliest of some that are drawn.
  Config Draw(const Cube& cube, RandomStream& random) const;

  // Of a proposal that is best()[proposal], and of one that was drawn.
  Rationale ExplainBest(ProposalNumber proposal) const;
  Rationale ExplainDraw() const;

 private:
  struct Group {
    std::vector<size_t> dimensions;
    std::optional<RankedParzen> good;
  };
  std::string Text() const;  // "62 results of 2 earlier sweeps"
  static bool Has(const Group& group, const Point& point);
  static Point Part(const Group& group, const Point& point);

  std::vector<Group> groups_;
  std::vector<Point> good_;  // the best first
  std::vector<PriorResult> best_;
  size_t results_ = 0;
  bool fronts_ = false;  // there are several metrics
};

// The first trials of a searcher that breeds new ones from those that there are: points of a Sobol
// sequence. Beside results of earlier sweeps the best of each comes first; then in turns a draw
// near the good ones and a point of the sequence, since children are seldom far from their parents,
// and what was good elsewhere need not be here.
class FirstPopulation {
 public:
  FirstPopulation(const Record& record, uint64_t seed);

  // Whether the proposal is for the best of an earlier sweep, however many trials there are.
  bool Repeats(ProposalNumber proposal) const { return proposal.value < prior_.best().size(); }

  // At an attempt of Untried, and what is said of it; `until` as of StartPoint.
  Config Propose(const Cube& cube, ProposalNumber proposal, int attempt,
                 RandomStream& random) const;
  Rationale Explain(ProposalNumber proposal, int attempt, const std::string& until) const;

 private:
  bool IsDrawn(ProposalNumber proposal) const;  // near the good ones
  ProposalNumber PointOf(ProposalNumber proposal) const;

  Prior prior_;
  SobolSequence sobol_;
};

}  // namespace attune::searchers
