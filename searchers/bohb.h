#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "searchers/tpe.h"

namespace attune::searchers {

// The searcher of BOHB (Falkner et al., ICML 2018): a Parzen estimator of the results at one
// fidelity, the deepest at which there are enough, and every third trial at random. Made for
// schedulers that bring many trials to the same steps.
//
// A trial's result at a step is its best feasible value up to there. It counts at a fidelity when
// the trial has come so far and then completed, or was stopped or paused; one that goes on from
// there keeps the result that it had. Completed trials count at every one, and where enough of them
// have, the fidelity is the end.
//
// In the paper the model knows of no others. Here those that have not come so far rank behind, who
// came further first: they lost against others at some step. Were they left out, the model would
// propose more of them for as long as they are stopped early, having learnt nothing from it. The
// last are trials that failed, or met no constraint.
//
// The model is that of `tpe`, whose kernels and parallel draws are other than in the paper, with
// its belief in earlier sweeps.
class Bohb final : public Tpe {
 public:
  struct Options {
    int64_t min_points = 0;  // 0: two more than there are parameters
    int64_t candidates = 64;
    double good_fraction = 0.15;
    double random_fraction = 0.33;
  };

  // REQUIRES: options within the bounds of BohbEntry(), and one objective.
  explicit Bohb(const SweepSpec& spec);

  Suggestion Suggest(ProposalNumber proposal) const override;
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;

 protected:
  bool Follow(const Event& event, const std::optional<Record::News>& news) override;
  bool IsKnown(uint32_t trial) const override;
  bool Better(uint32_t a, uint32_t b) const override;
  std::optional<double> ValueOf(uint32_t trial) const override;
  std::string Order() const override;

 private:
  static constexpr Step kEnd{std::numeric_limits<int64_t>::max()};

  // How a trial's best value fell, and how far it had come when it last stood.
  struct Curve {
    std::vector<Step> steps;
    std::vector<double> values;
    Step reached{0};  // kEnd: it has completed; 0: it has not stood yet
    Step counted{0};  // in reached_; 0: it lies outside of the space
  };

  Step Reached(uint32_t trial) const;  // of its curve
  // At which it is ranked: the fidelity, or not so far; where there is none, as far as it came.
  Step Depth(uint32_t trial) const;
  double Value(uint32_t trial) const;  // its best up to there; infinity where it had none by then
  // What the record has just taken of a report; whether a result that counts is another one now.
  bool Take(uint32_t trial, Step step);
  void Stand(uint32_t trial);  // how far it has come, by what became of it wherever it lies
  void Count(uint32_t trial);  // the same in `reached_`, where it lies in the space
  bool Choose();               // the fidelity; whether it is another one now

  Options options_;
  std::vector<Curve> curves_;
  std::map<Step, int64_t, std::greater<>> reached_;  // how many have come just so far
  Step fidelity_{0};
};

Entry<Searcher> BohbEntry();

}  // namespace attune::searchers
