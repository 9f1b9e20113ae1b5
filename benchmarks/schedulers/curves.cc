// scheduler_curves RUNS TRAININGS METRIC:MODE:FILE…: measures all schedulers on recorded curves, as
// in `scheduler_curves 400 5,10,20 val_accuracy:max:tune_trainer.csv`. Each file is the output of
// `attune db export --what reports --sweep SWEEP` for a sweep that trained all trials to the end.
// Prints the Markdown table of docs/benchmarks.md.
//
// Each run takes the trials of a file in a random order, and starts again with the first if it
// needs more. Each trial has its own speed, the same for all schedulers. After all workers together
// have trained for TRAININGS full trainings, the regret is
//
//   (best recorded − best reported so far) / (best recorded − median of the trials' best)
//
// The table shows its mean over runs. After the comma is the difference to the first scheduler in
// the same runs, with a 95 % interval from 2,000 bootstrap samples of runs.

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
constexpr double kPace = 0.25;  // standard deviation of the logarithm of a trial's speed

using Regrets = std::vector<double>;  // one regret for each number of trainings

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

// The curves of a file in a random order that depends on the seed.
class ShuffledCurves final : public simulate::Curves {
 public:
  ShuffledCurves(const simulate::RecordedCurves& recorded, uint64_t seed)
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

// The curves of a file, with the best and the median loss that regrets need.
class Task {
 public:
  Task(Objective objective, simulate::RecordedCurves recorded)
      : objective_(std::move(objective)), recorded_(std::move(recorded)) {
    std::vector<double> losses;
    for (const auto& curve : recorded_.all()) {
      double loss = std::numeric_limits<double>::infinity();
      for (const auto& [step, point] : curve) {
        loss = std::fmin(loss, LossOf(point.value));
        last_ = std::max(last_, step);
      }
      losses.push_back(loss);
    }
    std::ranges::sort(losses);
    best_loss_ = losses.front();
    median_loss_ = losses[losses.size() / 2];
  }

  Regrets Run(const AlgorithmSpec& scheduler, int workers, const std::vector<int64_t>& trainings,
              uint64_t seed) const;

 private:
  double LossOf(double value) const { return objective_.mode == Mode::kMin ? value : -value; }

  Objective objective_;
  simulate::RecordedCurves recorded_;
  Step last_{0};
  double best_loss_ = 0;
  double median_loss_ = 0;
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
  double best_loss = std::numeric_limits<double>::infinity();
  int64_t spent = 0;
  const auto observe = [&](const Event& event) {
    const auto* reported = std::get_if<TrialReported>(&event.fact);
    if (reported == nullptr) return;
    best_loss = std::fmin(best_loss, LossOf(reported->report.metrics.at(objective_.metric)));
    ++spent;
    if (regrets.size() < trainings.size() && spent == trainings[regrets.size()] * last_.value)
      regrets.push_back((best_loss - best_loss_) / (median_loss_ - best_loss_));
  };
  const int64_t all = trainings.back() * last_.value;
  // The simulation ends with an error when `max_reports` is reached.
  const auto outcome =
      simulate::Simulate(spec, cli::AllAlgorithms(), ShuffledCurves(recorded_, seed),
                         {.slots = workers, .max_reports = all}, observe);
  if (spent < all) {
    std::fprintf(stderr, "%s ended early: %s\n", scheduler.name.c_str(),
                 outcome.ok() ? outcome->reason.c_str() : outcome.error().message.c_str());
    std::exit(1);
  }
  return regrets;
}

void Compare(const std::vector<Task>& tasks, const std::vector<int64_t>& trainings,
             uint64_t runs_of_each) {
  for (const int workers : kWorkers) {
    std::vector<std::vector<Regrets>> runs;  // by contender
    for (const Contender& contender : Contenders()) {
      std::vector<Regrets>& contender_runs = runs.emplace_back();
      for (const Task& task : tasks) {
        for (uint64_t seed = 1; seed <= runs_of_each; ++seed) {
          contender_runs.push_back(task.Run(contender.scheduler, workers, trainings, seed));
        }
      }
      std::printf("| %d | %s |", workers, contender.label);
      for (size_t i = 0; i < trainings.size(); ++i) {
        std::vector<double> regrets;
        std::vector<double> differences;
        for (size_t run = 0; run < contender_runs.size(); ++run) {
          regrets.push_back(contender_runs[run][i]);
          differences.push_back(contender_runs[run][i] - runs.front()[run][i]);
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

// Parses "5,10,20". Empty if the text is not an increasing list of numbers.
std::vector<int64_t> ParseTrainings(std::stringstream text) {
  std::vector<int64_t> trainings;
  for (std::string part; std::getline(text, part, ',');) {
    trainings.push_back(std::atoll(part.c_str()));
    if (trainings.back() <= (trainings.size() < 2 ? 0 : trainings.end()[-2])) return {};
  }
  return trainings;
}

// Parses "accuracy:max:curves.csv" and reads the file.
Result<Task> ParseTask(std::stringstream text) {
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
  const auto trainings = benchmarks::ParseTrainings(std::stringstream(argc > 3 ? argv[2] : ""));
  if (runs < 1 || trainings.empty()) {
    std::fprintf(stderr, "usage: scheduler_curves RUNS TRAININGS METRIC:max|min:FILE...\n");
    return 2;
  }
  std::vector<benchmarks::Task> tasks;
  for (int i = 3; i < argc; ++i) {
    auto task = benchmarks::ParseTask(std::stringstream(argv[i]));
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
