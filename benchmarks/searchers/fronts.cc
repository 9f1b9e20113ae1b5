// searcher_fronts [SEEDS] [TRIALS]: how good is the front of a budget of trials? Prints a table in
// Markdown, that of docs/benchmarks.md.
//
// Problems with two objectives by Zitzler, Deb and Thiele ("Comparison of multiobjective
// evolutionary algorithms", Evolutionary Computation 8, 2000) and with three by Deb, Thiele,
// Laumanns and Zitzler
// ("Scalable test problems for evolutionary multiobjective optimization", 2005), in 10 dimensions,
// with the distance parameters' best moved to a place of the seed's, so that no end of a range or
// middle flatters. A score is the hypervolume that a run's front lacks beside the best front there
// is, divided by what random search lacks, the mean of 20 runs; objectives are scaled by the worst
// of 1,000 random points. Means are geometric.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "benchmarks/searchers/ask_tell.h"
#include "core/base/random.h"
#include "core/space/nondominated_sort.h"

namespace attune::benchmarks {
namespace {

using Vector = std::vector<double>;
constexpr double kPi = std::numbers::pi;
constexpr size_t kDimensions = 10;
constexpr uint64_t kYardstickRuns = 20;
constexpr double kLeastScore = 1e-3;

struct MultiProblem {
  const char* name;
  size_t objectives;
  // Of parameters from 0 to 1, of which those beyond objectives - 1 are best at 0.5.
  std::function<Vector(const Vector&)> losses;
};

double MeanDistance(const Vector& x) {  // from the best, 0 to 1
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

// An instance: where its parameters are best.
Vector Losses(const MultiProblem& problem, const Vector& best, const Config& config) {
  Vector x;
  for (const auto& [name, value] : config.entries()) x.push_back(std::get<double>(value));
  for (size_t i = problem.objectives - 1; i < x.size(); ++i) {
    // Each side of the best is half of the problem's range.
    x[i] = x[i] < best[i] ? 0.5 * x[i] / best[i] : 1 - 0.5 * (1 - x[i]) / (1 - best[i]);
  }
  return problem.losses(x);
}

Vector BestPlace(uint64_t seed) {
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

double Volume(const std::vector<Vector>& all, const Vector& scale) {
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

double VolumeOf(const MultiProblem& problem, const std::string& searcher, uint64_t seed,
                const Vector& best, const Vector& scale, int trials) {
  AskTell tuner(Box(), searcher, seed, problem.objectives);
  std::vector<Vector> all;
  for (int i = 0; i < trials; ++i) {
    const auto trial = tuner.Ask();
    all.push_back(Losses(problem, best, trial->config));
    tuner.Tell(trial->number, all.back());
  }
  return Volume(all, scale);
}

// The volume of the best front, by a fine grid of its parameters.
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
  return Volume(all, scale);
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
      const Vector best = BestPlace(seed);
      AskTell random(Box(), "random", 2'000'000, problem.objectives);
      Vector scale(problem.objectives, 0);
      for (int i = 0; i < 1000; ++i) {
        const Vector losses = Losses(problem, best, random.Ask()->config);
        for (size_t j = 0; j < losses.size(); ++j) scale[j] = std::max(scale[j], losses[j]);
      }
      const double most = BestVolume(problem, scale);
      double lacking = 0;
      for (uint64_t run = 0; run < kYardstickRuns; ++run) {
        lacking += most - VolumeOf(problem, "random", 1'000'000 + run, best, scale, trials);
      }
      lacking /= kYardstickRuns;
      for (size_t i = 0; i < searchers.size(); ++i) {
        const double volume = VolumeOf(problem, searchers[i], seed, best, scale, trials);
        sums[i] += std::log(std::max((most - volume) / lacking, kLeastScore));
      }
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

}  // namespace
}  // namespace attune::benchmarks

int main(int argc, char** argv) {
  const int seeds = argc > 1 ? std::atoi(argv[1]) : 20;
  const int trials = argc > 2 ? std::atoi(argv[2]) : 200;
  if (argc > 3 || seeds < 1 || trials < 1) {
    std::fprintf(stderr, "usage: searcher_fronts [SEEDS [TRIALS]], numbers from 1 on\n");
    return 2;
  }
  attune::benchmarks::Run(static_cast<uint64_t>(seeds), trials);
}
