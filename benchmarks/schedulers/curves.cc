// scheduler_curves RUNS TRAININGS METRIC:MODE:FILE…: what is every scheduler worth on curves that
// were recorded? As in `scheduler_curves 400 5,10,20 val_accuracy:max:tune_trainer.csv`. Each file
// is what `attune db export --what reports --sweep SWEEP` prints of a sweep whose trials were all
// trained to the end. Prints a table in Markdown, that of docs/benchmarks.md.
//
// A run takes the trials of one file in an order of its own; with more than there are it begins
// again with the first. Workers train at a pace that each trial has, the same for all schedulers.
// When they have together spent so many full trainings, the regret is
//
//   (best recorded − best reported so far) / (best recorded − median of the trials' best)
//
// Printed is its mean over runs and, behind the comma, by how much it differs from that of the
// first scheduler in the same runs, with an interval (95 %) of 2,000 bootstrap samples of runs.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "benchmarks/mean.h"
#include "cli/algorithms.h"
#include "core/base/random.h"
#include "searchers/model/draw.h"
#include "simulator/recorded_curves.h"
#include "simulator/simulation.h"

namespace attune::benchmarks {
namespace {

constexpr std::array<int, 2> kWorkers{4, 16};
constexpr double kPace = 0.25;  // deviation of its logarithm

using Regrets = std::vector<double>;  // one for each number of trainings

struct Contender {
  const char* label;
  AlgorithmSpec scheduler;
};

const std::vector<Contender>& Contenders() {
  const auto rungs = [](const char* name) {
    return AlgorithmSpec{.name = name, .options = {{"reduction_factor", int64_t{3}}}};
  };
  static const std::vector<Contender> contenders = [&] {
    AlgorithmSpec promoting = rungs("asha");
    promoting.options["mode"] = std::string("promote");
    AlgorithmSpec brackets = promoting;
    brackets.options["brackets"] = int64_t{3};
    return std::vector<Contender>{{"`asha`, `mode: promote`", promoting},
                                  {"the same, `brackets: 3`", brackets},
                                  {"`extrapolate`", rungs("extrapolate")},
                                  {"`asha`", rungs("asha")},
                                  {"`pasha`", rungs("pasha")},
                                  {"`hyperband`", rungs("hyperband")},
                                  {"`median`", {.name = "median"}},
                                  {"`percentile`", {.name = "percentile"}},
                                  {"`fifo`", {.name = "fifo"}}};
  }();
  return contenders;
}

// The curves of one file: as losses, in an order of the seed's.
class Shuffled final : public simulate::Curves {
 public:
  Shuffled(const simulate::RecordedCurves& recorded, uint64_t seed)
      : recorded_(recorded), seed_(seed), order_(recorded.all().size()) {
    std::iota(order_.begin(), order_.end(), 0);
    RandomStream random(seed, TrialNumber(0), "order");
    for (size_t i = order_.size(); i > 1; --i) {
      const auto j = static_cast<size_t>(random.Integer(0, static_cast<int64_t>(i) - 1));
      std::swap(order_[i - 1], order_[j]);
    }
  }

  double ValueAt(TrialNumber trial, const Config& config, Step step) const override {
    return recorded_.ValueAt(RowOf(trial), config, step);
  }
  std::optional<Seconds> SecondsOf(TrialNumber trial, Step) const override {
    RandomStream random(seed_, RowOf(trial), "pace");
    return Seconds(std::exp(kPace * searchers::StandardNormal(random)));
  }

 private:
  TrialNumber RowOf(TrialNumber trial) const {
    return TrialNumber(order_[trial.value % order_.size()]);
  }

  const simulate::RecordedCurves& recorded_;
  uint64_t seed_;
  std::vector<uint32_t> order_;
};

// Curves, and what of them is needed to judge a run.
class Task {
 public:
  Task(Objective objective, simulate::RecordedCurves recorded)
      : objective_(std::move(objective)), recorded_(std::move(recorded)) {
    std::vector<double> least;
    for (const auto& curve : recorded_.all()) {
      double loss = std::numeric_limits<double>::infinity();
      for (const auto& [step, point] : curve) {
        loss = std::fmin(loss, LossOf(point.value));
        last_ = std::max(last_, step);
      }
      least.push_back(loss);
    }
    std::ranges::sort(least);
    least_ = least.front();
    median_ = least[least.size() / 2];
  }

  Regrets Run(const AlgorithmSpec& scheduler, int workers, const std::vector<int64_t>& trainings,
              uint64_t seed) const;

 private:
  double LossOf(double value) const { return objective_.mode == Mode::kMin ? value : -value; }

  Objective objective_;
  simulate::RecordedCurves recorded_;
  Step last_{0};
  double least_ = 0;
  double median_ = 0;
};

Regrets Task::Run(const AlgorithmSpec& scheduler, int workers,
                  const std::vector<int64_t>& trainings, uint64_t seed) const {
  SweepSpec spec{.name = "curves",
                 .program = {.command = {"train"}},
                 .objectives = {objective_},
                 .space = SearchSpace({{.name = "x", .domain = FloatDomain{.min = 0, .max = 1}}}),
                 .searcher = {.name = "random"},
                 .scheduler = scheduler,
                 .max_step = last_,
                 .stop = {.max_trials = 100'000}};
  spec.seed = seed;
  cli::AllAlgorithms().Complete(spec);

  Regrets regrets;
  double least = std::numeric_limits<double>::infinity();
  int64_t spent = 0;
  const auto observe = [&](const Event& event) {
    const auto* reported = std::get_if<TrialReported>(&event.fact);
    if (reported == nullptr) return;
    least = std::fmin(least, LossOf(reported->report.metrics.at(objective_.metric)));
    ++spent;
    if (regrets.size() < trainings.size() && spent == trainings[regrets.size()] * last_.value)
      regrets.push_back((least - least_) / (median_ - least_));
  };
  const int64_t all = trainings.back() * last_.value;
  // Given up when all is spent, which is what the error says.
  const auto over = simulate::Simulate(spec, cli::AllAlgorithms(), Shuffled(recorded_, seed),
                                       {.slots = workers, .max_reports = all}, observe);
  if (spent < all) {
    std::fprintf(stderr, "%s ended early: %s\n", scheduler.name.c_str(),
                 over.ok() ? over->reason.c_str() : over.error().message.c_str());
    std::exit(1);
  }
  return regrets;
}

void Compare(const std::vector<Task>& tasks, const std::vector<int64_t>& trainings,
             uint64_t runs_of_each) {
  for (const int workers : kWorkers) {
    std::vector<std::vector<Regrets>> runs;  // of each contender
    for (const Contender& contender : Contenders()) {
      std::vector<Regrets>& mine = runs.emplace_back();
      for (const Task& task : tasks) {
        for (uint64_t seed = 1; seed <= runs_of_each; ++seed) {
          mine.push_back(task.Run(contender.scheduler, workers, trainings, seed));
        }
      }
      std::printf("| %d | %s |", workers, contender.label);
      for (size_t i = 0; i < trainings.size(); ++i) {
        std::vector<double> regrets;
        std::vector<double> differences;
        for (size_t run = 0; run < mine.size(); ++run) {
          regrets.push_back(mine[run][i]);
          differences.push_back(mine[run][i] - runs.front()[run][i]);
        }
        std::printf(" %.4f", MeanOf(regrets).mean);
        if (runs.size() > 1) {
          const auto [mean, low, high] = MeanOf(differences);
          std::printf(", %+.4f [%+.4f, %+.4f]", mean, low, high);
        }
        std::printf(" |");
      }
      std::printf("\n");
      std::fflush(stdout);
    }
  }
}

// Of "5,10,20"; empty where that is no growing list of numbers.
std::vector<int64_t> TrainingsOf(std::stringstream text) {
  std::vector<int64_t> trainings;
  for (std::string part; std::getline(text, part, ',');) {
    trainings.push_back(std::atoll(part.c_str()));
    if (trainings.back() <= (trainings.size() < 2 ? 0 : trainings.end()[-2])) return {};
  }
  return trainings;
}

// Of "accuracy:max:curves.csv".
Result<Task> TaskOf(std::stringstream text) {
  std::string metric;
  std::string mode;
  std::string name;
  std::getline(std::getline(std::getline(text, metric, ':'), mode, ':'), name);
  if (mode != "max" && mode != "min")
    return Error{ErrorCode::kInvalid, text.str() + " is not METRIC:max:FILE or METRIC:min:FILE"};
  std::ifstream file(name, std::ios::binary);
  const std::string csv{std::istreambuf_iterator<char>(file), {}};
  auto recorded = simulate::ReadCurves(csv, name, metric);
  if (!recorded.ok()) return recorded.error();
  return Task(mode == "max" ? Maximise(metric) : Minimise(metric), std::move(recorded).value());
}

}  // namespace
}  // namespace attune::benchmarks

int main(int argc, char** argv) {
  using namespace attune;
  const int runs = argc > 3 ? std::atoi(argv[1]) : 0;
  const auto trainings = benchmarks::TrainingsOf(std::stringstream(argc > 3 ? argv[2] : ""));
  if (runs < 1 || trainings.empty()) {
    std::fprintf(stderr, "usage: scheduler_curves RUNS TRAININGS METRIC:max|min:FILE...\n");
    return 2;
  }
  std::vector<benchmarks::Task> tasks;
  for (int i = 3; i < argc; ++i) {
    auto task = benchmarks::TaskOf(std::stringstream(argv[i]));
    if (!task.ok()) {
      std::fprintf(stderr, "%s\n", task.error().message.c_str());
      return 1;
    }
    tasks.push_back(std::move(task).value());
  }
  std::printf("| workers | scheduler |");
  for (const int64_t count : trainings) std::printf(" %lld |", static_cast<long long>(count));
  std::printf("\n| ---: | --- |");
  for (size_t i = 0; i < trainings.size(); ++i) std::printf(" ---: |");
  std::printf("\n");
  benchmarks::Compare(tasks, trainings, static_cast<uint64_t>(runs));
}
