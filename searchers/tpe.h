#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/searcher.h"
#include "searchers/gaussian/quadratic_fit.h"
#include "searchers/model/parzen.h"
#include "searchers/model/prior.h"
#include "searchers/model/record.h"
#include "searchers/model/sobol_sequence.h"
#include "searchers/model/wide_parzen.h"

namespace attune::searchers {

// Tree-structured Parzen estimator (Bergstra et al., NIPS 2011), multivariate and grouped.
//
// Trials are ranked by Record::Better: completed trials by value, then unfinished ones by their
// last step, then infeasible and failed ones. The best fifth are the good trials, but at most 25,
// and at most a third of the trials that did not fail. Candidates are drawn from the density of the
// good trials. The proposal is the candidate with the largest ratio of this density to the density
// of the other trials.
//
// - With several objectives, trials of one kind are ranked by fronts, and within a front by what
//   they add to the hypervolume (BestOf). Up to 100 trials are then good (MOTPE: Ozaki et al.,
//   JAIR 73, 2022).
// - Parameters with the same conditions form a group with one joint model, which uses the trials
//   that have these parameters. Parents are proposed first (Optuna's `group`).
// - Good trials have weights that fall with the rank. The other trials have equal weights
//   (searchers/model/parzen.h).
// - Running trials are in neither density. Counting them among the others ("constant liar") keeps
//   parallel proposals apart, but makes them worse (docs/reference/searchers.md). If many trials
//   run in proportion to the results, there are only few rounds. More candidates are then drawn
//   around the weighted mean of the good trials, as in evolution strategies (RankedParzen's
//   middle).
// - The densities do not tell where the optimum is between good trials. With one objective a
//   quadratic function of the best results (QuadraticFit) does. Half of the candidates are at its
//   estimated minimum. Its probability of an improvement is added to the score, with a weight that
//   grows with the share of the results that it explains.
// - Parameters with dependents decide which groups are proposed. The good trials soon agree on
// their
//   values, right or wrong. If a proposal is nearly the same as an earlier trial, it would teach
//   nothing. These parameters are then drawn at random, so that other branches are tried too.
// - Until `startup_trials` trials have ended, proposals are points of a Sobol sequence.
// - In a finite space nothing is proposed twice, and the search ends when everything was proposed.
//
// An observation usually changes one kernel per group, and the fit if the trial is among the best.
// A suggestion evaluates each observation once per candidate.
class Tpe : public Searcher {
 public:
  struct Options {
    int64_t startup_trials = 6;
    int64_t candidates = 24;
    double good_fraction = 0.2;
  };
  static constexpr size_t kMaxGood = 25;
  static constexpr size_t kMaxGoodOfFronts = 100;  // with several objectives

  // REQUIRES: options within the bounds of TpeEntry().
  explicit Tpe(const SweepSpec& spec);

  Suggestion Suggest(ProposalNumber proposal) const override;
  bool NeedsThread() const override;  // with very many candidates
  void Observe(const Event& event) override;
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override { record_.Save(archive); }
  void Load(ArchiveReader& archive) override;

 protected:
  Tpe(const SweepSpec& spec, Options options);

  const Record& record() const { return record_; }
  // Whether the proposal is for the best of an earlier sweep.
  bool RepeatsPrior(ProposalNumber proposal) const { return proposal.value < prior_.best().size(); }
  uint64_t seed() const { return seed_; }
  void Adapt(const SweepSpec& spec, Options options);
  void Rebuild();

  // A subclass may choose and rank the results in another way, with the functions below.

  // Called for each event after the record has observed it. Returns true if the rank of any
  // trial may have changed, apart from the trial in `news`.
  virtual bool UpdateRanking(const Event& event, const std::optional<Record::News>& news);
  // Whether the trial has a result to learn from.
  virtual bool IsKnown(uint32_t trial) const;
  // REQUIRES: both trials are known.
  virtual bool Better(uint32_t a, uint32_t b) const { return record_.Better(a, b); }
  // The value that a trial is ranked by; nullopt for trials without one, which rank last.
  virtual std::optional<double> ValueOf(uint32_t trial) const;
  // Describes the ranking in rationales, such as ", completed ones first".
  virtual std::string OrderText() const { return ""; }

 private:
  // Dimensions that exist together, and the trials that have them.
  struct Group {
    std::vector<size_t> dimensions;
    std::vector<Axis> axes;
    std::vector<uint32_t> trials;      // in the order of creation, as the kernels of `others`
    std::vector<uint32_t> ranked;      // the known trials, the best first
    std::vector<uint32_t> good;        // the first ones of `ranked`
    std::optional<RankedParzen> best;  // the density of the good trials; empty without any
    WideParzen others;                 // the density of the other known trials
    std::optional<QuadraticFit> fit;   // fitted to the first results of `ranked`

    // The index in `trials` at which the trial is, or would be inserted.
    size_t IndexOf(uint32_t trial) const;
  };

  Point PointOf(const Group& group, uint32_t trial) const;
  void Add(Group& group, uint32_t trial);
  void Rank(Group& group, uint32_t trial);
  void ChooseGood(Group& group);
  void Fit(Group& group);
  // The number of trials in `ranked` with a value; they come first.
  ptrdiff_t CountValued(const Group& group) const;

  // The number of running trials among the latest kLatest.
  size_t CountRunning(const Group& group) const;
  bool IsStartingUp() const;
  // Whether a trial with nearly the same configuration exists.
  bool IsTwin(const Config& config) const;
  // The values of the parameters with dependents: "optimizer adam, layers 2".
  std::string ForkText(const Config& config) const;
  Rationale Explain(const Config& config, double ratio) const;
  // Whether the point is a corner of the cube that was tried. REQUIRES: the space is one group.
  bool IsTriedCorner(const Point& point) const;
  // Returns at least one candidate. REQUIRES: the group has good trials, or prior_share > 0.
  std::vector<Point> DrawCandidates(size_t group, double middle, double prior_share,
                                    RandomStream& random) const;
  // Sets the coordinates of the group. Returns the logarithm of the ratio of the densities; 0
  // without a model.
  double Propose(size_t group, RandomStream& random, Point& point) const;

  Options options_;
  uint64_t seed_;
  Record record_;
  SobolSequence sobol_;
  std::vector<Group> groups_;
  std::vector<size_t> forks_;  // dimensions with dependents; empty in a finite space
  Prior prior_;
};

Entry<Searcher> TpeEntry();

}  // namespace attune::searchers
