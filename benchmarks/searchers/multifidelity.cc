// searcher_multifidelity [SEEDS [INSTANCE [SEARCHER…]]]: measures searchers with a scheduler that
// trains most trials for only a few steps. Prints the Markdown table of docs/benchmarks.md. Each
// seed is another instance of each problem, starting with INSTANCE (default: 1).
//
// A trial's loss at step s of 81 combines two functions of benchmarks/searchers/problems.h: F of
// the instance and G of another instance. Both are 0 at their optimum and 1 at the median
// configuration:
//
//   (1 - b·w(s))·F + b·w(s)·G + w(s) + σ·w(s)·noise,  w(s) = ((81/s)^0.5 - 1) / (81^0.5 - 1)
//
// So b and σ control how much early values mislead, and at the last step the loss is F. There are
// eight workers, each trial has its own speed, and the rungs are at 1, 3, 9, 27 and 81 steps.
//
// A run's score is F of the best trial at the deepest step that any trial has reached, at least
// 0.0001, after all workers together have trained for 10, 20 and 40 full trainings. Means are
// geometric. After the comma is the ratio to the first searcher's score, with a 95 % interval over
// whole problems.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/mean.h"
#include "benchmarks/searchers/problems.h"
#include "cli/algorithms.h"
#include "core/base/random.h"
#include "searchers/model/cube.h"
#include "searchers/model/draw.h"
#include "simulator/simulation.h"

namespace attune::benchmarks {
namespace {

constexpr int64_t kSteps = 81;
constexpr std::array<int64_t, 3> kTrainings{10, 20, 40};
constexpr int kWorkers = 8;
constexpr uint64_t kOtherInstance = 10'000;
constexpr double kLeastScore = 1e-4;
constexpr double kPace = 0.25;  // standard deviation of the logarithm of a trial's speed

struct Family {
  const char* name;
  double bias;   // b
  double noise;  // σ
};

using Scores = std::array<double, kTrainings.size()>;  // logarithms

// A problem's loss, scaled to 0 at the optimum and 1 at the median configuration.
class ScaledLoss {
 public:
  explicit ScaledLoss(const Problem& problem) : problem_(problem) {
    std::vector<double> losses;
    for (uint32_t i = 0; i < 401; ++i) {
      RandomStream random(1, TrialNumber(i), "median");
      const Config config =
          searchers::Cube(problem.space).Build([&](size_t) { return random.Uniform(); });
      losses.push_back(problem.loss(config) - problem.optimum);
    }
    std::ranges::nth_element(losses, losses.begin() + 200);
    median_ = losses[200];
  }
  double operator()(const Config& config) const {
    return (problem_.loss(config) - problem_.optimum) / median_;
  }
  const Problem& problem() const { return problem_; }

 private:
  const Problem& problem_;
  double median_ = 1;
};

class BiasedCurves final : public simulate::Curves {
 public:
  BiasedCurves(const ScaledLoss& at_end, const ScaledLoss& early, Family family, uint64_t seed)
      : at_end_(at_end), early_(early), family_(family), seed_(seed) {}

  double ValueAt(TrialNumber trial, const Config& config, Step step) const override {
    const auto root = [](double ratio) { return std::sqrt(ratio) - 1; };
    const double weight =
        root(static_cast<double>(kSteps) / static_cast<double>(step.value)) / root(kSteps);
    RandomStream random(seed_, trial, "noise/" + std::to_string(step.value));
    const double noise = 1 + family_.noise * searchers::StandardNormal(random);
    const double bias = family_.bias * weight;
    return (1 - bias) * at_end_(config) + bias * early_(config) + weight * noise;
  }
  std::optional<Seconds> SecondsOf(TrialNumber trial, Step) const override {
    RandomStream random(seed_, trial, "pace");
    return Seconds(std::exp(kPace * searchers::StandardNormal(random)));
  }

 private:
  const ScaledLoss& at_end_;
  const ScaledLoss& early_;
  Family family_;
  uint64_t seed_;
};

AlgorithmSpec SchedulerSpec(const std::string& scheduler) {
  AlgorithmSpec rungs{.name = scheduler, .options = {{"reduction_factor", int64_t{3}}}};
  if (scheduler == "asha") rungs.options["mode"] = std::string("promote");
  return rungs;
}

Scores Run(const ScaledLoss& loss, const simulate::Curves& curves, const std::string& scheduler,
           const std::string& searcher, uint64_t seed) {
  SweepSpec spec{.name = "multifidelity",
                 .program = {.command = {"train"}},
                 .objectives = {Minimise("loss")},
                 .space = loss.problem().space,
                 .searcher = {.name = searcher},
                 .scheduler = SchedulerSpec(scheduler),
                 .max_step = Step(kSteps),
                 .stop = {.max_trials = 100'000}};
  spec.seed = seed;
  cli::AllAlgorithms().Complete(spec);

  std::vector<Config> configs;
  Step deepest{0};
  double best = 0;
  double score = 0;
  int64_t spent = 0;
  Scores scores{};
  const auto observe = [&](const Event& event) {
    if (const auto* created = std::get_if<TrialCreated>(&event.fact)) {
      configs.push_back(created->config);
    }
    const auto* reported = std::get_if<TrialReported>(&event.fact);
    if (reported == nullptr) return;
    const double value = reported->report.metrics.at("loss");
    const Step step = reported->report.step;
    if (step > deepest || (step == deepest && value < best)) {
      deepest = step;
      best = value;
      score = loss(configs[reported->attempt.trial.number.value]);
    }
    ++spent;
    for (size_t i = 0; i < kTrainings.size(); ++i) {
      if (spent == kTrainings[i] * kSteps) scores[i] = std::log(std::max(score, kLeastScore));
    }
  };
  // The simulation ends with an error when `max_reports` is reached.
  const auto outcome =
      simulate::Simulate(spec, cli::AllAlgorithms(), curves,
                         {.slots = kWorkers, .max_reports = kTrainings.back() * kSteps}, observe);
  if (spent < kTrainings.back() * kSteps) {
    std::fprintf(stderr, "%s ended early: %s\n", searcher.c_str(),
                 outcome.ok() ? outcome->reason.c_str() : outcome.error().message.c_str());
    std::exit(1);
  }
  return scores;
}

using ScoresByProblem = std::map<std::string, std::vector<Scores>>;

Mean Summarise(const ScoresByProblem& scores, const ScoresByProblem* base, size_t part) {
  std::vector<double> means;
  for (const auto& [problem, runs] : scores) {
    double sum = 0;
    for (size_t i = 0; i < runs.size(); ++i) {
      sum += runs[i][part] - (base == nullptr ? 0 : base->at(problem)[i][part]);
    }
    means.push_back(sum / static_cast<double>(runs.size()));
  }
  return GeometricMeanOf(means);
}

void Compare(Family family, const std::string& scheduler, uint64_t seeds, uint64_t instance,
             const std::vector<std::string>& searchers) {
  std::vector<ScoresByProblem> scores(searchers.size());
  for (uint64_t seed = instance; seed < instance + seeds; ++seed) {
    const auto problems = StandardProblems(seed);
    const auto others = StandardProblems(seed + kOtherInstance);
    for (size_t i = 0; i < problems.size(); ++i) {
      const ScaledLoss loss(problems[i]);
      const ScaledLoss early(others[i]);
      const BiasedCurves curves(loss, early, family, seed);
      const std::string name = problems[i].name + std::to_string(problems[i].dimensions);
      for (size_t j = 0; j < searchers.size(); ++j) {
        scores[j][name].push_back(Run(loss, curves, scheduler, searchers[j], seed));
      }
    }
  }
  for (size_t j = 0; j < searchers.size(); ++j) {
    std::printf("| `%s` | %s | `%s` |", scheduler.c_str(), family.name, searchers[j].c_str());
    for (size_t part = 0; part < kTrainings.size(); ++part) {
      std::printf(" %.4f", Summarise(scores[j], nullptr, part).mean);
      if (j > 0) {
        const auto [ratio, low, high] = Summarise(scores[j], &scores[0], part);
        std::printf(", %.2f [%.2f, %.2f]", ratio, low, high);
      }
      std::printf(" |");
    }
    std::printf("\n");
  }
  std::fflush(stdout);
}

}  // namespace
}  // namespace attune::benchmarks

int main(int argc, char** argv) {
  const int seeds = argc > 1 ? std::atoi(argv[1]) : 5;
  const int instance = argc > 2 ? std::atoi(argv[2]) : 1;
  if (seeds < 1 || instance < 1) {
    std::fprintf(stderr, "usage: searcher_multifidelity [SEEDS [INSTANCE [SEARCHER...]]]\n");
    return 2;
  }
  std::vector<std::string> searchers{"random", "tpe", "bohb"};
  if (argc > 3) searchers.assign(argv + 3, argv + argc);
  std::printf("| scheduler | early values | searcher | 10 | 20 | 40 |\n");
  std::printf("| --- | --- | --- | ---: | ---: | ---: |\n");
  for (const char* scheduler : {"asha", "hyperband"}) {
    for (const attune::benchmarks::Family family :
         {attune::benchmarks::Family{"tell", 0.2, 0.1}, {"mislead", 0.6, 0.3}}) {
      attune::benchmarks::Compare(family, scheduler, static_cast<uint64_t>(seeds),
                                  static_cast<uint64_t>(instance), searchers);
    }
  }
}
