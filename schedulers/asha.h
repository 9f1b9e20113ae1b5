#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/scheduler.h"
#include "core/space/objective.h"

namespace attune::schedulers {

// Asynchronous successive halving, the form that stops (Li et al., "A system for massively parallel
// hyperparameter tuning", MLSys 2020, §3). No trial ever waits for another and no checkpoint is
// needed.
//
// Rungs are min, min·η, min·η², … below max, and max; η is the reduction factor. A trial is
// recorded at a rung once, with its first report at or after the rung's step, and goes on if it is
// then among the best ⌊n/η⌋ of the n recorded there so far, itself included; while n < η every one
// goes on. At the last rung nobody is stopped: the trial is complete.
//
// A report that passes several rungs at once counts for the highest; the trial has skipped the
// others and is never recorded there, because a value of a later step would be unfair to them. A
// step that lies before, or was already reported, is ignored: a retried trial that repeats steps is
// not judged twice.
//
// NaN, infinities and a missing metric are the worst value. Of equal values the one reported first
// is better.
class Asha final : public Scheduler {
 public:
  struct Options {
    Step min{1};
    Step max{0};
    int64_t reduction_factor = 4;
  };

  // REQUIRES: 1 <= min < max, reduction_factor >= 2.
  Asha(Objective objective, Options options);

  // O(log n) in the trials recorded at the rung.
  Verdict Judge(const TrialView& trial, const Report& report) const override;
  std::optional<Step> NextMilestone(const TrialView& trial, Step after) const override;
  void Observe(const Event& event) override;
  // Rungs that are there before and after keep what was recorded at them. With a larger max there
  // are more, and the one that was the last may be none any more.
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;
  std::vector<Step> Rungs() const override;

 private:
  struct Rung {
    Step step;
    std::vector<double> values;  // best first; equal ones as they came
  };

  void SetRungs(const Options& options);
  // The rung at which the trial is recorded with a report of this step; null: at none.
  const Rung* RungFor(TrialNumber trial, Step step) const;
  size_t Passed(TrialNumber trial) const;
  size_t RungsUpTo(Step step) const;
  double ValueOf(const Report& report) const;
  // Where the value would stand among those of the rung.
  size_t PlaceIn(const Rung& rung, double value) const;
  // The two halves of a sentence: how the value stands, and who goes on.
  std::string Standing(const Report& report, const Reason& reason) const;
  std::string Rule(int64_t going_on, double cutoff) const;

  Objective objective_;
  int64_t reduction_factor_;
  std::vector<Rung> rungs_;
  std::map<TrialNumber, Step> passed_;  // where a trial was recorded last
};

Entry<Scheduler> AshaEntry();

}  // namespace attune::schedulers
