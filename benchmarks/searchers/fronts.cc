// searcher_fronts [SEEDS [TRIALS [warm]]]: measures the quality of Pareto fronts after a budget of
// trials. With `warm`: measures the gain from an earlier sweep. Prints the Markdown table of
// docs/benchmarks.md.
//
// Problems with two objectives by Zitzler, Deb and Thiele ("Comparison of multiobjective
// evolutionary algorithms", Evolutionary Computation 8, 2000) and with three by Deb, Thiele,
// Laumanns and Zitzler
// ("Scalable test problems for evolutionary multiobjective optimization", 2005), in 10 dimensions,
// The optimum of the distance parameters is moved to a position that depends on the seed, so that
// searchers that prefer the ends or the middle of a range have no advantage.
//
// A run's score is its missing hypervolume (the best possible front's minus the run's), divided by
// the mean missing hypervolume of 20 runs of random search. Objectives are scaled by the worst of
// 1,000 random points. Means are geometric.
//
// The earlier sweep uses tpe and half as many trials. The optimum of its instance differs by a
// twentieth of each range, in a random direction; or it is unrelated. The table shows scores after
// a quarter, a half and all of the trials, as multiples of the scores without the earlier sweep,
// with 95 % intervals from 2,000 bootstrap samples of whole problems.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/mean.h"
#include "benchmarks/searchers/ask_tell.h"
#include "core/base/random.h"
#include "core/brain/warm_start.h"
#include "core/space/nondominated_sort.h"

namespace attune::benchmarks {
namespace {

using Vector = std::vector<double>;
constexpr double kPi = std::numbers::pi;
constexpr size_t kDimensions = 10;
constexpr uint64_t kYardstickRuns = 20;
constexpr double kLeastScore = 1e-3;
constexpr double kShift = 0.05;
constexpr std::array kParts{0.25, 0.5, 1.0};

struct MultiProblem {
  const char* name;
  size_t objectives;
  // All parameters are in [0, 1]. From index objectives - 1 on, their optimum is 0.5.
  std::function<Vector(const Vector&)> losses;
};

double MeanDistance(const Vector& x) {  // from the optimum, 0 to 1
  double sum = 0;
  for (size_t i = 1; i < x.size(); ++i) sum += 2 * std::abs(x[i] - 0.5);
  return sum / static_cast<double>(x.size() - 1);
}

double Rugged(const Vector& x, size_t first, double width) {
  double sum = 0;
  for (size_t i = first; i < x.size(); ++i) {
    const double z = width * (x[i] - 0.5);
    sum += z * z - 10 * std::cos(4 * kPi * z) + 10;
  }
  return sum;
}

Vector Sphere3(const Vector& x, double g) {  // the front of DTLZ 2 to 4
  const double a = x[0] * kPi / 2;
  const double b = x[1] * kPi / 2;
  return {(1 + g) * std::cos(a) * std::cos(b), (1 + g) * std::cos(a) * std::sin(b),
          (1 + g) * std::sin(a)};
}

const std::vector<MultiProblem>& Problems() {
  static const std::vector<MultiProblem> problems{
      {"zdt1", 2,
       [](const Vector& x) {
         const double g = 1 + 9 * MeanDistance(x);
         return Vector{x[0], g * (1 - std::sqrt(x[0] / g))};
       }},
      {"zdt2", 2,
       [](const Vector& x) {
         const double g = 1 + 9 * MeanDistance(x);
         return Vector{x[0], g * (1 - (x[0] / g) * (x[0] / g))};
       }},
      {"zdt3", 2,
       [](const Vector& x) {
         const double g = 1 + 9 * MeanDistance(x);
         const double part = x[0] / g;
         return Vector{x[0], 1 + g * (1 - std::sqrt(part) - part * std::sin(10 * kPi * x[0]))};
       }},
      {"zdt4", 2,
       [](const Vector& x) {
         const double g = 1 + Rugged(x, 1, 10);
         return Vector{x[0], g * (1 - std::sqrt(x[0] / g))};
       }},
      {"zdt6", 2,
       [](const Vector& x) {
         const double first = 1 - std::exp(-4 * x[0]) * std::pow(std::sin(6 * kPi * x[0]), 6);
         const double g = 1 + 9 * std::pow(MeanDistance(x), 0.25);
         return Vector{first, g * (1 - (first / g) * (first / g))};
       }},
      {"dtlz1", 3,
       [](const Vector& x) {
         const double g = 100 * Rugged(x, 2, 1);
         return Vector{0.5 * x[0] * x[1] * (1 + g), 0.5 * x[0] * (1 - x[1]) * (1 + g),
                       0.5 * (1 - x[0]) * (1 + g)};
       }},
      {"dtlz2", 3,
       [](const Vector& x) {
         double g = 0;
         for (size_t i = 2; i < x.size(); ++i) g += (x[i] - 0.5) * (x[i] - 0.5);
         return Sphere3(x, g);
       }},
      {"dtlz4", 3, [](const Vector& x) {
         double g = 0;
         for (size_t i = 2; i < x.size(); ++i) g += (x[i] - 0.5) * (x[i] - 0.5);
         Vector bent = x;
         for (size_t i = 0; i < 2; ++i) bent[i] = std::pow(x[i], 100);
         return Sphere3(bent, g);
       }}};
  return problems;
}

// The losses of an instance whose distance parameters have their optimum at `best`.
Vector Losses(const MultiProblem& problem, const Vector& best, const Config& config) {
  Vector x;
  for (const auto& [name, value] : config.entries()) x.push_back(std::get<double>(value));
  for (size_t i = problem.objectives - 1; i < x.size(); ++i) {
    // Maps the range below the optimum to [0, 0.5], and the range above it to [0.5, 1].
    x[i] = x[i] < best[i] ? 0.5 * x[i] / best[i] : 1 - 0.5 * (1 - x[i]) / (1 - best[i]);
  }
  return problem.losses(x);
}

Vector OptimumOf(uint64_t seed) {
  RandomStream random(seed, TrialNumber(0), "fronts");
  Vector best(kDimensions);
  for (double& v : best) v = random.Uniform(0.2, 0.8);
  return best;
}

SearchSpace Box() {
  std::vector<Parameter> parameters;
  for (size_t i = 0; i < kDimensions; ++i) {
    parameters.push_back({"x" + std::to_string(i), FloatDomain{.min = 0, .max = 1}, {}});
  }
  return SearchSpace(std::move(parameters));
}

double HypervolumeOf(const std::vector<Vector>& all, const Vector& scale) {
  std::vector<Vector> front;
  for (const Vector& losses : all) {
    Vector scaled;
    for (size_t i = 0; i < losses.size(); ++i) scaled.push_back(losses[i] / scale[i]);
    const bool inside = std::ranges::all_of(scaled, [](double v) { return v < 1.1; });
    if (inside) front.push_back(std::move(scaled));
  }
  std::ranges::sort(front);
  std::vector<Vector> kept;
  for (const Vector& point : front) {
    const bool dominated = std::ranges::any_of(kept, [&](const Vector& other) {
      for (size_t i = 0; i < point.size(); ++i) {
        if (other[i] > point[i]) return false;
      }
      return true;
    });
    if (!dominated) kept.push_back(point);
  }
  return kept.empty() ? 0 : Hypervolume(kept);
}

std::vector<Vector> RunSearcher(const MultiProblem& problem, const std::string& searcher,
                                uint64_t seed, const Vector& best, int trials,
                                std::vector<WarmStart> warm_start = {}) {
  AskTell tuner(Box(), searcher, seed, problem.objectives, std::move(warm_start));
  std::vector<Vector> all;
  for (int i = 0; i < trials; ++i) {
    const auto trial = tuner.Ask();
    all.push_back(Losses(problem, best, trial->config));
    tuner.Tell(trial->number, all.back());
  }
  return all;
}

// The hypervolume of the best possible front, from a fine grid of its parameters.
double BestVolume(const MultiProblem& problem, const Vector& scale) {
  std::vector<Vector> all;
  const int steps = problem.objectives == 2 ? 2000 : 40;
  for (int i = 0; i <= steps; ++i) {
    for (int j = 0; j <= (problem.objectives == 2 ? 0 : steps); ++j) {
      Vector x(kDimensions, 0.5);
      const auto part = [&](int k) {
        const double even = static_cast<double>(k) / steps;
        return problem.name == std::string("dtlz4") ? std::pow(even, 0.01) : even;
      };
      x[0] = part(i);
      if (problem.objectives == 3) x[1] = part(j);
      all.push_back(problem.losses(x));
    }
  }
  return HypervolumeOf(all, scale);
}

// The scale for the scores of an instance.
struct Yardstick {
  Vector scale;
  double most = 0;     // hypervolume of the best possible front
  double missing = 0;  // mean missing hypervolume of random search

  double LogScore(const std::vector<Vector>& all) const {
    return std::log(std::max((most - HypervolumeOf(all, scale)) / missing, kLeastScore));
  }
};

Yardstick MakeYardstick(const MultiProblem& problem, const Vector& best, int trials) {
  AskTell random(Box(), "random", 2'000'000, problem.objectives);
  Yardstick yardstick{.scale = Vector(problem.objectives, 0)};
  for (int i = 0; i < 1000; ++i) {
    const Vector losses = Losses(problem, best, random.Ask()->config);
    for (size_t j = 0; j < losses.size(); ++j)
      yardstick.scale[j] = std::max(yardstick.scale[j], losses[j]);
  }
  yardstick.most = BestVolume(problem, yardstick.scale);
  for (uint64_t run = 0; run < kYardstickRuns; ++run) {
    const auto all = RunSearcher(problem, "random", 1'000'000 + run, best, trials);
    yardstick.missing += yardstick.most - HypervolumeOf(all, yardstick.scale);
  }
  yardstick.missing /= kYardstickRuns;
  return yardstick;
}

void Run(uint64_t seeds, int trials) {
  const std::vector<std::string> searchers{"random", "sobol", "evolution", "nsga2", "tpe", "gp"};
  std::printf("| problem |");
  for (const std::string& name : searchers) std::printf(" %s |", name.c_str());
  std::printf("\n| --- |");
  for (size_t i = 0; i < searchers.size(); ++i) std::printf(" ---: |");
  Vector totals(searchers.size(), 0);
  for (const MultiProblem& problem : Problems()) {
    Vector sums(searchers.size(), 0);
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      const Vector best = OptimumOf(seed);
      const Yardstick yardstick = MakeYardstick(problem, best, trials);
      for (size_t i = 0; i < searchers.size(); ++i)
        sums[i] += yardstick.LogScore(RunSearcher(problem, searchers[i], seed, best, trials));
    }
    std::printf("\n| %s, %zu objectives |", problem.name, problem.objectives);
    for (size_t i = 0; i < searchers.size(); ++i) {
      std::printf(" %.3f |", std::exp(sums[i] / static_cast<double>(seeds)));
      totals[i] += sums[i] / static_cast<double>(seeds * Problems().size());
    }
  }
  std::printf("\n| **all** |");
  for (const double total : totals) std::printf(" %.3f |", std::exp(total));
  std::printf("\n");
}

Vector ShiftedOptimum(Vector best, uint64_t seed) {
  RandomStream random(seed, TrialNumber(0), "shift");
  for (double& v : best) v += random.Uniform() < 0.5 ? -kShift : kShift;
  return best;
}

// Results of an earlier sweep on an instance with its optimum at `best`.
WarmStart RunEarlierSweep(const MultiProblem& problem, uint64_t seed, const Vector& best,
                          int trials) {
  AskTell tuner(Box(), "tpe", seed + 7'000, problem.objectives);
  std::vector<TrialResult> results;
  for (int i = 0; i < trials; ++i) {
    const auto trial = tuner.Ask();
    const Vector losses = Losses(problem, best, trial->config);
    tuner.Tell(trial->number, losses);
    results.push_back({.config = trial->config,
                       .metrics = AskTell::MetricsOf(losses),
                       .trial = TrialNumber(trial->number)});
  }
  const SweepSpec spec{.objectives = AskTell::Objectives(problem.objectives), .space = Box()};
  return TakeResults(spec, SweepId(1), spec, std::move(results)).value();
}

// The scores after each fraction in kParts of the trials.
Vector LogScores(const Yardstick& yardstick, const std::vector<Vector>& all) {
  Vector scores;
  for (const double part : kParts) {
    const auto count = static_cast<ptrdiff_t>(part * static_cast<double>(all.size()));
    scores.push_back(yardstick.LogScore({all.begin(), all.begin() + count}));
  }
  return scores;
}

void RunWarm(uint64_t seeds, int trials) {
  std::printf("| searcher | earlier sweep | ¼ budget | ½ budget | budget |\n");
  std::printf("| --- | --- | ---: | ---: | ---: |\n");
  for (const std::string searcher : {"tpe", "gp", "nsga2", "evolution"}) {
    // For each kind of earlier sweep and each part: the mean logarithm for each problem.
    std::array<std::array<Vector, kParts.size()>, 2> ratios;
    for (const MultiProblem& problem : Problems()) {
      for (auto& kind : ratios)
        for (Vector& means : kind) means.push_back(0);
      for (uint64_t seed = 1; seed <= seeds; ++seed) {
        const Vector best = OptimumOf(seed);
        const Yardstick yardstick = MakeYardstick(problem, best, trials);
        const Vector cold =
            LogScores(yardstick, RunSearcher(problem, searcher, seed, best, trials));
        const std::array optima{ShiftedOptimum(best, seed), OptimumOf(seed + 100'000)};
        for (size_t kind = 0; kind < optima.size(); ++kind) {
          const WarmStart earlier = RunEarlierSweep(problem, seed, optima[kind], trials / 2);
          const Vector warm =
              LogScores(yardstick, RunSearcher(problem, searcher, seed, best, trials, {earlier}));
          for (size_t part = 0; part < kParts.size(); ++part)
            ratios[kind][part].back() += (warm[part] - cold[part]) / static_cast<double>(seeds);
        }
      }
    }
    for (size_t kind = 0; kind < ratios.size(); ++kind) {
      std::printf("| `%s` | %s |", searcher.c_str(), kind == 0 ? "shifted" : "elsewhere");
      for (const Vector& means : ratios[kind]) {
        const auto [mean, low, high] = GeometricMeanOf(means);
        std::printf(" %.2f [%.2f, %.2f] |", mean, low, high);
      }
      std::printf("\n");
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace attune::benchmarks

int main(int argc, char** argv) {
  const int seeds = argc > 1 ? std::atoi(argv[1]) : 20;
  const int trials = argc > 2 ? std::atoi(argv[2]) : 200;
  const bool warm = argc > 3 && argv[3] == std::string("warm");
  if (argc > 4 || warm != (argc > 3) || seeds < 1 || trials < 1) {
    std::fprintf(stderr, "usage: searcher_fronts [SEEDS [TRIALS [warm]]], numbers from 1 on\n");
    return 2;
  }
  (warm ? attune::benchmarks::RunWarm : attune::benchmarks::Run)(static_cast<uint64_t>(seeds),
                                                                 trials);
}
