#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/scheduler.h"
#include "core/space/objective.h"

namespace attune::schedulers {

// Stops a trial whose best value so far is worse than what the others had when they were as far, in
// two forms.
//
// `median` is the median stopping rule (Golovin et al., "Google Vizier", KDD 2017, §3.2.1): a trial
// stops at step s if its best value by s is strictly worse than the median, over the other trials
// that have come to s, of their running means up to s. Where the paper takes those that have
// completed, all that have come as far count, so that the first comers of a parallel sweep are of
// use at once. A running mean begins at the grace period, so that bad first steps are not held
// against anyone for ever.
//
// `percentile` goes on with a trial while its best value by s is among the best p percent of the
// others' best values by s, interpolated linearly between neighbours: the percentile rules of
// Optuna and Ax, which take the others' values at s alone, with like compared to like.
//
// Trials are judged at the lines: the grace period, and every `interval` steps from there on. A
// trial is judged once at a line, with its first report at or after it; what it has by then is what
// it has at that line. A report that passes several lines at once counts for the last one. A step
// that was reported before, or lies before such a one, changes nothing. Whoever ends keeps its
// place at the lines that it has come to.
//
// NaN, infinities and a missing metric are the worst value: a best value passes over them, and a
// running mean that has one is the worst itself. With fewer than `min_samples` others at a line, or
// where the cutoff is not finite, nobody stops.
class PercentileStopping final : public Scheduler {
 public:
  enum class Form { kMedian, kPercentile };
  struct Options {
    Form form = Form::kMedian;
    Step grace_period{1};
    int64_t interval = 1;     // steps
    int64_t min_samples = 3;  // others at the line
    double percentile = 50;   // of the others, counted from the best; of kMedian, 50
    Step max{0};              // 0: the program ends itself
  };

  // REQUIRES: grace_period, interval, min_samples >= 1; 0 <= percentile <= 100.
  PercentileStopping(Objective objective, Options options);

  // O(log n) in the trials that have come to the line.
  Verdict Judge(const TrialView& trial, const Report& report) const override;
  std::optional<Step> NextMilestone(const TrialView& trial, Step after) const override;
  void Observe(const Event& event) override;
  // What was recorded stays at the lines where it was: of other lines, those that are where old
  // ones were have them, and the rest fill from now on.
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;

  // What a trial has reported so far.
  struct Curve {
    Step last{0};
    double best = std::numeric_limits<double>::quiet_NaN();
    double sum = 0;  // of the values from the grace period on
    int64_t count = 0;
  };

 private:
  // The last line at or before the step; nullopt: it lies before them all.
  std::optional<Step> LineUpTo(Step step) const;
  // The line at which the trial is judged with a report of this step; nullopt: at none.
  std::optional<Step> LineFor(const Curve& curve, Step step) const;
  Curve CurveOf(TrialNumber trial) const;
  void Add(const Report& report, Curve& curve) const;
  // Of a curve, what others are compared with.
  double StatisticOf(const Curve& curve) const;
  // REQUIRES: `sorted` is not empty.
  double CutoffOf(const std::vector<double>& sorted) const;
  // How many of them are better than the value.
  size_t BetterThan(double value, const std::vector<double>& sorted) const;
  std::string Whose(size_t others, Step line) const;

  Objective objective_;
  Options options_;
  std::map<TrialNumber, Curve> curves_;
  std::map<Step, std::vector<double>> lines_;  // statistics of those that came to each, best first
};

Entry<Scheduler> MedianEntry();
Entry<Scheduler> PercentileEntry();

}  // namespace attune::schedulers
