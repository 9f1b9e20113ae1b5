// searcher_quality [branches] [SEEDS [INSTANCE [SEARCHER[:WORKERS[:TIMES[:NOISE]]]…]]]: how good is
// the best trial of a small budget? Prints two tables in Markdown, without arguments those of
// docs/benchmarks.md; every seed is another instance of every problem, from INSTANCE (1) on; with
// `branches`, of spaces that branch instead of the standard problems. A searcher with several
// workers is compared with the same with one, where that is there too: gp gp:32.
//
// A run's score is its normalised regret: (best loss - optimum) / (the same of random search, the
// mean over 100 runs), no less than 0.001; 1 is random search. The budget is 20 + 40·√dimensions
// trials, or TIMES as many: tpe:1:4 tpe:32:4; or so many for each dimension: tpe:32:100d. With
// NOISE, each loss is told with a normal deviation of so many times the regret of random search,
// and what counts is the loss, without it, of the trial that looked best: gp:1:1:0.1. Scores are
// averaged as geometric means; intervals (95 %) come from 2,000 bootstrap samples of whole
// problems.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "benchmarks/mean.h"
#include "benchmarks/searchers/ask_tell.h"
#include "benchmarks/searchers/problems.h"
#include "core/base/random.h"
#include "searchers/model/draw.h"

namespace attune::benchmarks {
namespace {

constexpr int kYardstickRuns = 100;
constexpr double kLeastScore = 1e-3;

// With so many workers that ask before the first of them has told; they tell in turn, each loss
// with this deviation. The loss of the trial that looked best.
double BestLoss(const Problem& problem, const std::string& searcher, uint64_t seed, size_t workers,
                int budget, double deviation) {
  AskTell tuner(problem.space, searcher, seed);
  std::deque<AskTell::Trial> out;
  double best = std::numeric_limits<double>::infinity();
  double best_told = best;
  for (int told = 0, asked = 0; told < budget; ++told) {
    while (out.size() < workers && asked < budget) {
      auto trial = tuner.Ask();
      if (!trial) break;
      out.push_back(std::move(*trial));
      ++asked;
    }
    if (out.empty()) break;
    const uint32_t number = out.front().number;
    const double loss = problem.loss(out.front().config);
    RandomStream random(seed, TrialNumber(number), "noise");
    const double told_loss = loss + deviation * searchers::StandardNormal(random);
    if (told_loss < best_told) {
      best_told = told_loss;
      best = loss;
    }
    tuner.Tell(number, told_loss);
    out.pop_front();
  }
  return best;
}

double MeanOfRandom(const Problem& problem, int budget) {
  double sum = 0;
  for (uint64_t seed = 0; seed < kYardstickRuns; ++seed) {
    sum += BestLoss(problem, "random", 1'000'000 + seed, 1, budget, 0) - problem.optimum;
  }
  return sum / kYardstickRuns;
}

struct Contender {
  std::string name;
  std::string searcher;
  size_t workers = 1;
  int times = 1;                // the budget
  bool each_dimension = false;  // that is for each dimension
  double noise = 0;             // deviation, in units of the regret of random search
  // By problem, the logarithms of its runs' scores.
  std::map<std::string, std::vector<double>> scores = {};
};

int Budget(const Problem& problem, const Contender& contender) {
  if (contender.each_dimension) return contender.times * problem.dimensions;
  return contender.times * static_cast<int>(std::ceil(20 + 40 * std::sqrt(problem.dimensions)));
}

// Geometric means, of the contender's scores divided by the base's where there is one.
Mean Summary(const Contender& contender, const Contender* base,
             const std::vector<std::string>& of) {
  std::vector<double> means;
  for (const std::string& problem : of) {
    const auto& scores = contender.scores.at(problem);
    double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
    if (base != nullptr) {
      const auto& others = base->scores.at(problem);
      sum -= std::accumulate(others.begin(), others.end(), 0.0);
    }
    means.push_back(sum / static_cast<double>(scores.size()));
  }
  return GeometricMeanOf(means);
}

void Print(const std::vector<Contender>& contenders, const std::vector<std::string>& problems) {
  std::printf("| problem |");
  for (const Contender& contender : contenders) std::printf(" %s |", contender.name.c_str());
  std::printf("\n| --- |");
  for (size_t i = 0; i < contenders.size(); ++i) std::printf(" ---: |");
  std::printf("\n");
  for (const std::string& problem : problems) {
    std::printf("| %s |", problem.c_str());
    for (const Contender& contender : contenders) {
      std::printf(" %.3f |", Summary(contender, nullptr, {problem}).mean);
    }
    std::printf("\n");
  }
  std::printf("| **all** |");
  for (const Contender& contender : contenders) {
    const Mean all = Summary(contender, nullptr, problems);
    std::printf(" %.3f [%.3f, %.3f] |", all.mean, all.low, all.high);
  }
  std::printf("\n\n| with | regret, of that with one worker |\n| --- | ---: |\n");
  for (const Contender& contender : contenders) {
    if (contender.workers == 1) continue;
    const auto one = std::ranges::find_if(contenders, [&](const Contender& other) {
      return other.searcher == contender.searcher && other.workers == 1 &&
             other.times == contender.times && other.each_dimension == contender.each_dimension &&
             other.noise == contender.noise;
    });
    if (one == contenders.end()) continue;
    const Mean ratio = Summary(contender, &*one, problems);
    std::printf("| %s | %.2f [%.2f, %.2f] |\n", contender.name.c_str(), ratio.mean, ratio.low,
                ratio.high);
  }
}

using Problems = std::vector<Problem> (*)(uint64_t instance);

void Run(Problems problems, uint64_t seeds, uint64_t instance, std::vector<Contender> contenders) {
  std::vector<std::string> names;
  for (uint64_t seed = instance; seed < instance + seeds; ++seed) {
    for (const Problem& problem : problems(seed)) {
      const std::string name = problem.name + " " + std::to_string(problem.dimensions) + "-d";
      if (seed == instance) names.push_back(name);
      std::map<int, double> yardsticks;  // by budget
      for (Contender& contender : contenders) {
        const int budget = Budget(problem, contender);
        const auto [yardstick, is_new] = yardsticks.try_emplace(budget);
        if (is_new) yardstick->second = MeanOfRandom(problem, budget);
        const double unit = yardstick->second;
        const double best = BestLoss(problem, contender.searcher, seed, contender.workers, budget,
                                     contender.noise * unit);
        const double score = (best - problem.optimum) / unit;
        contender.scores[name].push_back(std::log(std::max(score, kLeastScore)));
      }
    }
  }
  Print(contenders, names);
}

// Of "gp:8:2:0.1"; what is not there is one worker, the budget once, and no noise.
Contender Parsed(const std::string& text) {
  std::istringstream parts(text);
  const auto next = [&parts](const char* fallback) {
    std::string part;
    return std::getline(parts, part, ':') ? part : std::string(fallback);
  };
  Contender contender{.searcher = next("")};
  const int workers = std::max(std::atoi(next("1").c_str()), 1);
  const std::string budget = next("1");
  contender.times = std::max(std::atoi(budget.c_str()), 1);
  contender.each_dimension = budget.ends_with('d');
  const std::string noise = next("0");
  contender.noise = std::max(std::atof(noise.c_str()), 0.0);
  contender.workers = static_cast<size_t>(workers);
  contender.name = contender.searcher;
  if (workers > 1) contender.name += ", " + std::to_string(workers) + " workers";
  if (contender.each_dimension) {
    contender.name += ", " + std::to_string(contender.times) + " trials a dimension";
  } else if (contender.times > 1) {
    contender.name += ", " + std::to_string(contender.times) + " times the trials";
  }
  if (contender.noise > 0) contender.name += ", noise " + noise;
  return contender;
}

}  // namespace
}  // namespace attune::benchmarks

int main(int argc, char** argv) {
  using namespace attune::benchmarks;
  std::vector<std::string> arguments(argv + 1, argv + argc);
  Problems problems = StandardProblems;
  std::vector<std::string> names{"random",    "sobol", "tpe",    "gp",     "auto",   "cmaes",
                                 "evolution", "tpe:8", "tpe:32", "auto:8", "auto:32"};
  if (!arguments.empty() && arguments[0] == "branches") {
    arguments.erase(arguments.begin());
    problems = BranchingProblems;
    names = {"random", "tpe", "gp", "auto", "evolution", "tpe:8", "auto:8"};
  }
  const int seeds = !arguments.empty() ? std::atoi(arguments[0].c_str()) : 20;
  const int instance = arguments.size() > 1 ? std::atoi(arguments[1].c_str()) : 1;
  if (seeds < 1 || instance < 1) {
    std::fprintf(stderr,
                 "usage: searcher_quality [branches] [SEEDS [INSTANCE "
                 "[SEARCHER[:WORKERS[:TIMES[:NOISE]]]...]]], numbers from 1 on\n");
    return 2;
  }
  if (arguments.size() > 2) names.assign(arguments.begin() + 2, arguments.end());
  std::vector<Contender> contenders;
  for (const std::string& name : names) contenders.push_back(Parsed(name));
  Run(problems, static_cast<uint64_t>(seeds), static_cast<uint64_t>(instance),
      std::move(contenders));
}
