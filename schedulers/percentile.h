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

// Stops a trial whose best value so far is worse than a statistic of the other trials at its step.
//
// `median` is the median stopping rule (Golovin et al., "Google Vizier", KDD 2017, §3.2.1): a trial
// stops at step s if its best value by s is strictly worse than the median of the running means up
// to s of the other trials that have reached s. The paper takes completed trials only; here all
// count, so that the first trials of a parallel sweep are useful at once. A running mean starts at
// the grace period, so that bad first steps are not held against a trial for ever.
//
// `percentile` continues a trial while its best value by s is among the best p percent of the
// others' best values by s, interpolated linearly between neighbours. The percentile rules of
// Optuna and Ax use the others' values at s alone.
//
// Trials are judged at lines: the grace period, and every `interval` steps after it. A trial is
// judged once at a line, with its first report at or after it. A report that passes several lines
// counts for the last one. Repeated and earlier steps change nothing. A trial that ends keeps its
// place at the lines that it has reached.
//
// NaN, infinities and a missing metric are the worst value: a best value ignores them, and a
// running mean with one is itself the worst. With fewer than `min_samples` others at a line, or if
// the cutoff is not finite, no trial stops.
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

  // O(log n) in the trials at the line.
  Verdict Judge(const TrialView& trial, const Report& report) const override;
  std::optional<Step> NextMilestone(const TrialView& trial, Step after) const override;
  void Observe(const Event& event) override;
  // Records stay at their steps. New lines at such steps have them, and other new lines are empty.
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;

  // The reports of a trial so far.
  struct Curve {
    Step last{0};
    double best = std::numeric_limits<double>::quiet_NaN();
    double sum = 0;  // of the values since the grace period
    int64_t count = 0;
  };

 private:
  // The last line at or before the step; nullopt: none.
  std::optional<Step> LineUpTo(Step step) const;
  // The line at which the trial is judged with a report of this step; nullopt: at none.
  std::optional<Step> LineFor(const Curve& curve, Step step) const;
  Curve CurveOf(TrialNumber trial) const;
  void Add(const Report& report, Curve& curve) const;
  // The value that other trials are compared with.
  double StatisticOf(const Curve& curve) const;
  // REQUIRES: `sorted` is not empty.
  double CutoffOf(const std::vector<double>& sorted) const;
  size_t CountBetter(double value, const std::vector<double>& sorted) const;
  std::string CutoffText(size_t others, Step line) const;

  Objective objective_;
  Options options_;
  std::map<TrialNumber, Curve> curves_;
  std::map<Step, std::vector<double>> lines_;  // statistics of the trials at each, best first
};

Entry<Scheduler> MedianEntry();
Entry<Scheduler> PercentileEntry();

}  // namespace attune::schedulers
