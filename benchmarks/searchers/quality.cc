// searcher_quality [branches] [SEEDS [INSTANCE [SEARCHER[:WORKERS[:TIMES[:NOISE]]]…]]]: measures
// the best trial of a small budget. Prints two Markdown tables; without arguments, those of
// docs/benchmarks.md. Each seed is another instance of each problem, starting with INSTANCE
// (default: 1). With `branches`, the problems have conditional spaces. The second table compares a
// searcher with several workers with the same searcher with one worker, if both are given: gp
// gp:32.
//
// - Score: the normalised regret, (best loss - optimum) / (mean of the same for 100 runs of random
//   search), at least 0.001. Random search has the score 1. Means are geometric; 95 % intervals
//   come from 2,000 bootstrap samples of whole problems.
// - TIMES: multiplies the budget of 20 + 40·√dimensions trials, as in tpe:1:4. With a `d`, as in
//   tpe:32:100d, it is the number of trials per dimension.
// - NOISE: standard deviation of the normal noise of told losses, in units of the regret of random
//   search, as in gp:1:1:0.1. The score is the loss without noise of the trial with the best told
//   loss.

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

// Runs a searcher with `workers` trials at once. They tell in turn, each with noise of this
// standard deviation. Returns the loss without noise of the trial with the best told loss.
double BestLoss(const Problem& problem, const std::string& searcher, uint64_t seed, size_t workers,
                int budget, double deviation) {
  AskTell tuner(problem.space, searcher, seed);
  std::deque<AskTell::Trial> running;
  double best = std::numeric_limits<double>::infinity();
  double best_told = best;
  for (int told = 0, asked = 0; told < budget; ++told) {
    while (running.size() < workers && asked < budget) {
      auto trial = tuner.Ask();
      if (!trial) break;
      running.push_back(std::move(*trial));
      ++asked;
    }
    if (running.empty()) break;
    const uint32_t number = running.front().number;
    const double loss = problem.loss(running.front().config);
    RandomStream random(seed, TrialNumber(number), "noise");
    const double told_loss = loss + deviation * searchers::StandardNormal(random);
    if (told_loss < best_told) {
      best_told = told_loss;
      best = loss;
    }
    tuner.Tell(number, told_loss);
    running.pop_front();
  }
  return best;
}

double MeanRegretOfRandom(const Problem& problem, int budget) {
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
  int times = 1;                // multiplies the budget
  bool each_dimension = false;  // `times` is the number of trials per dimension
  double noise = 0;             // standard deviation, in units of the regret of random search
  // The logarithms of the scores, by problem.
  std::map<std::string, std::vector<double>> scores = {};
};

int Budget(const Problem& problem, const Contender& contender) {
  if (contender.each_dimension) return contender.times * problem.dimensions;
  return contender.times * static_cast<int>(std::ceil(20 + 40 * std::sqrt(problem.dimensions)));
}

// Geometric means of the contender's scores, divided by the scores of `base` if it is not null.
Mean Summarise(const Contender& contender, const Contender* base,
               const std::vector<std::string>& problems) {
  std::vector<double> means;
  for (const std::string& problem : problems) {
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
      std::printf(" %.3f |", Summarise(contender, nullptr, {problem}).mean);
    }
    std::printf("\n");
  }
  std::printf("| **all** |");
  for (const Contender& contender : contenders) {
    const Mean all = Summarise(contender, nullptr, problems);
    std::printf(" %.3f [%.3f, %.3f] |", all.mean, all.low, all.high);
  }
  std::printf("\n\n| with | regret, of that with one worker |\n| --- | ---: |\n");
  for (const Contender& contender : contenders) {
    if (contender.workers == 1) continue;
    const auto single_worker = std::ranges::find_if(contenders, [&](const Contender& other) {
      return other.searcher == contender.searcher && other.workers == 1 &&
             other.times == contender.times && other.each_dimension == contender.each_dimension &&
             other.noise == contender.noise;
    });
    if (single_worker == contenders.end()) continue;
    const Mean ratio = Summarise(contender, &*single_worker, problems);
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
        if (is_new) yardstick->second = MeanRegretOfRandom(problem, budget);
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

// Parses a contender such as "gp:8:2:0.1". Defaults: one worker, the budget once, no noise.
Contender ParseContender(const std::string& text) {
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
  for (const std::string& name : names) contenders.push_back(ParseContender(name));
  Run(problems, static_cast<uint64_t>(seeds), static_cast<uint64_t>(instance),
      std::move(contenders));
}
