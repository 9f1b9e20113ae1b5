#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/space/objective.h"
#include "core/space/search_space.h"

namespace attune {

// The result of a trial. A value of an objective that is missing or not finite counts as the worst.
struct TrialResult {
  Config config;
  Metrics metrics;
  TrialNumber trial = {};
  bool complete = true;  // false: it was stopped early, or has failed
  bool failed = false;
  Step step = {};  // the largest step reported
};

struct Importance {
  std::string parameter;
  double share = 0;  // the shares of all parameters add up to 1
  // An interval for the share: two standard deviations of the resampled shares to both sides.
  double low = 0;
  double high = 0;
};

struct Importances {
  int64_t trials = 0;                  // how many were analysed
  int64_t best = 0;                    // how many of them count as the best
  std::vector<Importance> parameters;  // without constants; the most important first
  std::string reason;                  // why there are no importances; else empty
};

// With fewer results, importances would be meaningless.
inline constexpr int64_t kFewestResults = 20;

// How often the trials are resampled for the intervals.
inline constexpr int kResamples = 16;

// How far a trial has trained.
struct TrialProgress {
  Step step;          // the largest step reported; 0: none
  bool over = false;  // it does not train any more, or is paused
};

// The step at which the trials of a sweep are compared: the largest landmark that at least half of
// the trials that are over have reached. If kFewestResults trials have reported, that many must
// also have reached it. 0: no trial has reported. Trials that are not over count only if they have
// reached it, so new trials do not lower the step.
//
// The landmarks are the rungs. Below the first rung, or without rungs, they are 1, 2, 3, 4, 6, 8,
// 12, 16 … and the last step. They are far apart, so the step changes rarely while trials run.
Step CommonStep(const std::vector<TrialProgress>& trials, const std::vector<Step>& rungs,
                Step last_step);

// How strongly each parameter determines whether a trial is among the best: PED-ANOVA (Watanabe,
// Bansal and Hutter, "PED-ANOVA: Efficiently quantifying hyperparameter importance in arbitrary
// subspaces", IJCAI 2023). The importance is the Pearson divergence between a parameter's density
// among the best tenth (at least five trials; ties are all included) and its density among all
// trials. It equals the variance of "is among the best" that the parameter alone explains.
//
// - Numbers are replaced by their ranks among all trials, in about 50 bins. The divergence does not
//   depend on the scale, and ranks give a finer resolution where the searcher has tried more
//   values. Listed values have no order. Both densities use the same kernel width (Scott's rule for
//   all).
// - The divergence that the same number of randomly drawn trials would have on average is
//   subtracted. With few trials and long lists of values, most of a divergence is chance.
// - A parameter that is not always active is compared only among the trials that have it. Let a be
//   the fraction of all trials that have it, and b that of the best trials. By the law of total
//   variance, the divergence is multiplied by b² / a, because the parent decides whether it exists.
// - The intervals come from a Poisson bootstrap: each resample gives each trial a random weight.
//   A weight depends only on the number of the trial, so a new trial does not change the others.
//
// The importances describe only the trials that were run.
Importances ImportancesOf(const SearchSpace& space, const Objective& objective,
                          const std::vector<TrialResult>& results);

}  // namespace attune
