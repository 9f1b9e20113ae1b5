#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "searchers/tpe.h"

namespace attune::searchers {

// The searcher of BOHB (Falkner et al., ICML 2018): a Parzen estimator over the results at one
// fidelity, and one random proposal in three. The fidelity is the deepest step that enough trials
// have reached. Made for schedulers that bring many trials to the same steps.
//
// The result of a trial at a step is its best feasible value up to this step. A trial reaches a
// step when it completes, stops or pauses there. If it is resumed, it keeps that result until then.
// A completed trial has reached every step. If enough trials are complete, the fidelity is the end.
//
// In the paper, the model ignores trials that have not reached the fidelity. Here they rank behind
// the others, by the step that they reached, because they lost against others at some step. Without
// them the model would keep proposing configurations that are stopped early. Trials that failed or
// violated the constraints rank last.
//
// The model is that of Tpe: its kernels and its parallel proposals differ from the paper, and it
// also uses results of earlier sweeps.
class Bohb final : public Tpe {
 public:
  struct Options {
    int64_t min_points = 0;  // trials that must have reached the fidelity; 0: parameters + 2
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
  bool UpdateRanking(const Event& event, const std::optional<Record::News>& news) override;
  bool IsKnown(uint32_t trial) const override;
  bool Better(uint32_t a, uint32_t b) const override;
  std::optional<double> ValueOf(uint32_t trial) const override;
  std::string OrderText() const override;

 private:
  static constexpr Step kEnd{std::numeric_limits<int64_t>::max()};

  // The improvements of a trial's best value, and the step at which it last ended or paused.
  struct Curve {
    std::vector<Step> steps;
    std::vector<double> values;
    Step reached{0};  // kEnd: completed; 0: it has not ended or paused
    Step counted{0};  // its key in reached_counts_; 0: not counted
  };

  // The step of the trial's curve; 0 without a curve.
  Step ReachedStep(uint32_t trial) const;
  // The step at which the trial is ranked: ReachedStep, but at most the fidelity if there is one.
  Step RankedStep(uint32_t trial) const;
  // The best value up to RankedStep; infinity if there is none.
  double RankedValue(uint32_t trial) const;
  // Adds a report that the record has observed. Returns whether a ranked value changed.
  bool AddReport(uint32_t trial, Step step);
  // Sets `reached` from the trial's outcome, also if the trial is outside the space.
  void UpdateReached(uint32_t trial);
  // Updates reached_counts_. A trial outside the space is not counted.
  void UpdateCounts(uint32_t trial);
  // Chooses the fidelity. Returns whether it changed.
  bool ChooseFidelity();

  Options options_;
  std::vector<Curve> curves_;
  std::map<Step, int64_t, std::greater<>> reached_counts_;  // trials by the step they reached
  Step fidelity_{0};
};

Entry<Searcher> BohbEntry();

}  // namespace attune::searchers
