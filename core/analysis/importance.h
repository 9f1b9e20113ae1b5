#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/space/objective.h"
#include "core/space/search_space.h"

namespace attune {

// What became of a trial. In an objective a value that is missing or not finite is the worst.
struct TrialResult {
  Config config;
  Metrics metrics;
  TrialNumber trial = {};
  bool complete = true;  // else it was cut short, or has failed
  bool failed = false;
  Step step = {};  // the deepest one reported
};

struct Importance {
  std::string parameter;
  double share = 0;  // of all parameters; they add up to 1
};

struct Importances {
  int64_t trials = 0;                  // that were looked at
  int64_t best = 0;                    // the best of them, held against all
  std::vector<Importance> parameters;  // without constants; the most important first
  std::string reason;                  // why there are none; else empty
};

// Fewer tell nothing.
inline constexpr int64_t kFewestResults = 20;

// How much each parameter decides about whether a trial is among the best: PED-ANOVA (Watanabe,
// Bansal and Hutter, "PED-ANOVA: Efficiently quantifying hyperparameter importance in arbitrary
// subspaces", IJCAI 2023), the Pearson divergence of a parameter's density among the best tenth
// (five at least; of equal values all) from that among all. It is the variance that the parameter
// alone explains of being among the best.
//
// - Numbers count by their rank among all trials, in some 50 bins, because a divergence does not
//   change with the scale: how finely they are told apart follows where the searcher went. Listed
//   values have no order. Both densities have one kernel's width (Scott's rule for all).
// - What as many trials drawn at random would have is taken off: with few trials, and lists of many
//   values, most of a divergence is chance.
// - A parameter that exists beside some values of others only is compared among trials that have
//   it. By the law of total variance that counts b² / a times, where a part a of all trials and a
//   part b of the best have it: that it exists is its parent's doing.
//
// The answer is about the trials that there are: what the searcher has not tried does not count.
Importances ImportancesOf(const SearchSpace& space, const Objective& objective,
                          const std::vector<TrialResult>& results);

}  // namespace attune
