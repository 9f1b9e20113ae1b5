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
// Trials are ranked (Record::Better): completed ones by value, then those cut short by how far they
// came, then infeasible ones, then failed ones. The best fifth, at most 25 and a third of those
// that did not fail, are the good ones. Of some candidates, drawn from the density of the good
// ones, the one is proposed where it is largest beside the density of the others.
//
// - With several objectives trials of one kind are ranked front after front, and within a front by
//   what they add to its hypervolume (BestOf); 100 may be good then (MOTPE: Ozaki et al., JAIR 73,
//   2022).
// - Parameters under the same conditions exist together and have one joint model, of the trials
//   that have them all; parents are proposed first (Optuna's `group`).
// - Better ones among the good weigh more, by their rank; the others weigh all alike
//   (searchers/model/parzen.h).
// - Trials that still run are in neither density. Among the others ("constant liar") they would
//   send parallel proposals apart, and measured, away from where they should go
//   (docs/reference/searchers.md). But the more of them run beside what is known, the more is drawn
//   around the weighted mean of the good ones, as evolution strategies do (RankedParzen's middle):
//   rounds are few then, and each must come further.
// - Densities say where good trials lie, and nothing of where between them the best may be. With
//   one objective a quadratic function of the best results (QuadraticFit) does: half of the
//   candidates are where it may be least, and its chance of a new best counts beside the ratio,
//   the more of the results it predicts.
// - Parameters on which others depend decide whose model proposes the rest, and the good trials
//   soon agree about them, right or wrong. Once a proposal is all but a trial's, which teaches
//   nothing, they are drawn at random instead, so that the other branches come further, too.
// - The first `startup_trials` trials that end are points of a Sobol sequence.
// - In a finite space nothing is proposed twice, and it is exhausted when all has been proposed.
//
// An observation changes a kernel a group, and seldom all of them, and the fit where it is among
// the best; a suggestion looks at every observation once a candidate.
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
  bool Thinks() const override;  // with very many candidates
  void Observe(const Event& event) override;
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override { record_.Save(archive); }
  void Load(ArchiveReader& archive) override;

 protected:
  Tpe(const SweepSpec& spec, Options options);

  const Record& record() const { return record_; }
  // Whether the proposal is for the best of an earlier sweep.
  bool Repeats(ProposalNumber proposal) const { return proposal.value < prior_.best().size(); }
  uint64_t seed() const { return seed_; }
  void Adapt(const SweepSpec& spec, Options options);
  void Rebuild();

  // What another choice of results changes. `a` and `b` are known; Follow sees each event that the
  // record has seen, and says whether other trials than that of the news are known or ranked anew.
  virtual bool UpdateRanking(const Event& event, const std::optional<Record::News>& news);
  virtual bool IsKnown(uint32_t trial) const;  // what became of it, so that it is learned from
  virtual bool Better(uint32_t a, uint32_t b) const { return record_.Better(a, b); }
  // By which it is ranked; nullopt where it has none, as those have that are ranked last.
  virtual std::optional<double> ValueOf(uint32_t trial) const;
  virtual std::string OrderText() const { return ""; }  // of its results: ", completed ones first"

 private:
  // Dimensions that exist together, and the trials that have them.
  struct Group {
    std::vector<size_t> dimensions;
    std::vector<Axis> axes;
    std::vector<uint32_t> trials;      // in the order of creation: that of the kernels
    std::vector<uint32_t> ranked;      // those whose result is known, the best first
    std::vector<uint32_t> good;        // the first of them
    std::optional<RankedParzen> best;  // what they are drawn from; null without them
    WideParzen others;
    std::optional<QuadraticFit> fit;  // of the first of `ranked`

    size_t IndexOf(uint32_t trial) const;
  };

  Point PointOf(const Group& group, uint32_t trial) const;
  void Add(Group& group, uint32_t trial);
  void Rank(Group& group, uint32_t trial);
  void ChooseGood(Group& group);
  void Fit(Group& group);
  ptrdiff_t CountValued(const Group& group) const;  // how many of `ranked` have a value

  size_t CountRunning(const Group& group) const;  // of the latest
  bool IsStartingUp() const;
  bool IsTwin(const Config& config) const;        // it is all but a trial's
  std::string ForkText(const Config& config) const;  // as it takes them
  Rationale Explain(const Config& config, double ratio) const;
  bool IsTriedCorner(const Point& point) const;  // REQUIRES: the space is one group
  // To choose from, at least one. REQUIRES: the group has good ones, or the prior a share.
  std::vector<Point> DrawCandidates(size_t group, double middle, double prior_share,
                                RandomStream& random) const;
  // Fills in the group's coordinates; gives the logarithm of the ratio of their densities, 0 where
  // there is no model.
  double Propose(size_t group, RandomStream& random, Point& point) const;

  Options options_;
  uint64_t seed_;
  Record record_;
  SobolSequence sobol_;
  std::vector<Group> groups_;
  std::vector<size_t> forks_;  // dimensions on which others depend; none where the space is finite
  Prior prior_;
};

Entry<Searcher> TpeEntry();

}  // namespace attune::searchers
