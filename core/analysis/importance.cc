#include "core/analysis/importance.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "core/base/random.h"
#include "core/space/domain.h"

namespace attune {
namespace {

constexpr double kBestPart = 0.1;
constexpr size_t kFewestBest = 5;
constexpr size_t kMostBins = 50;
constexpr double kScott = 1.06;
constexpr double kDeviationOfUniform = 0.288675;
constexpr uint64_t kSeed = 1;
constexpr double kMostCopies = 20;  // of a trial in a resample
constexpr double kDeviationsToEachSide = 2;

// The weight of each trial; 1 in the sample itself, a small whole number in a resample.
using Weights = std::vector<double>;

// The values that trials have of a parameter, in bins, and which of them are among the best.
struct Column {
  std::vector<double> all;   // the weight of the trials in each bin
  std::vector<double> best;  // the weight of those that are among the best
  std::vector<double> at;    // the rank of each bin, from 0 to 1; empty: the values have no order
};

// The trials that have a parameter. If its values are numbers, the trials are in their order, and
// equal numbers have equal ranks.
struct Values {
  const Parameter* parameter = nullptr;
  std::vector<size_t> trials;
  std::vector<size_t> ranks;  // of each trial's value; of a listed value: its place in the list
};

double Sum(const std::vector<double>& parts) {
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

Values ValuesOfList(const Parameter& parameter, const CategoricalDomain& list,
                    const std::vector<TrialResult>& results) {
  Values values{.parameter = &parameter};
  for (size_t i = 0; i < results.size(); ++i) {
    const Value* value = results[i].config.Find(parameter.name);
    for (size_t place = 0; value != nullptr && place < list.values.size(); ++place) {
      if (!SameSetting(list.values[place], *value)) continue;
      values.trials.push_back(i);
      values.ranks.push_back(place);
      break;
    }
  }
  return values;
}

Values ValuesOf(const Parameter& parameter, const std::vector<TrialResult>& results) {
  if (const auto* list = std::get_if<CategoricalDomain>(&parameter.domain))
    return ValuesOfList(parameter, *list, results);
  std::vector<std::pair<double, size_t>> numbers;
  for (size_t i = 0; i < results.size(); ++i) {
    const Value* value = results[i].config.Find(parameter.name);
    const auto number = value == nullptr ? std::nullopt : AsNumber(*value);
    if (number) numbers.emplace_back(*number, i);
  }
  std::ranges::sort(numbers);
  Values values{.parameter = &parameter};
  for (size_t i = 0; i < numbers.size(); ++i) {
    const bool same = i > 0 && numbers[i].first == numbers[i - 1].first;
    values.trials.push_back(numbers[i].second);
    values.ranks.push_back(same ? values.ranks.back() : i);
  }
  return values;
}

Column ColumnOfList(const CategoricalDomain& list, const Values& values, const Weights& weights,
                    const std::vector<bool>& is_best) {
  const std::vector<double> none(list.values.size(), 0);
  Column column{.all = none, .best = none, .at = {}};
  for (size_t i = 0; i < values.trials.size(); ++i) {
    const size_t trial = values.trials[i];
    column.all[values.ranks[i]] += weights[trial];
    if (is_best[trial]) column.best[values.ranks[i]] += weights[trial];
  }
  return column;
}

// The divergence does not depend on the scale, so numbers are replaced by their ranks, which are
// spread evenly. Equal numbers are in the same bin.
Column ColumnOfNumbers(const Values& values, const Weights& weights,
                       const std::vector<bool>& is_best) {
  double sum = 0;
  for (const size_t trial : values.trials) sum += weights[trial];
  Column column;
  const double wide = std::ceil(sum / kMostBins);
  std::optional<size_t> before_rank;
  for (size_t i = 0; i < values.trials.size(); ++i) {
    const size_t trial = values.trials[i];
    if (weights[trial] == 0) continue;
    const bool same = before_rank == values.ranks[i];
    if (column.all.empty() || (!same && column.all.back() >= wide)) {
      column.all.push_back(0);
      column.best.push_back(0);
    }
    column.all.back() += weights[trial];
    if (is_best[trial]) column.best.back() += weights[trial];
    before_rank = values.ranks[i];
  }
  double before = 0;
  for (const double count : column.all) {
    column.at.push_back((before + count / 2) / sum);
    before += count;
  }
  return column;
}

// The weights with which a value in the bin `from` is spread over all bins.
std::vector<double> Kernel(const Column& column, size_t from, double width) {
  std::vector<double> kernel(column.all.size(), 0);
  if (column.at.empty()) {
    kernel[from] = 1;
    return kernel;
  }
  for (size_t to = 0; to < kernel.size(); ++to) {
    const double z = (column.at[to] - column.at[from]) / width;
    kernel[to] = column.all[to] * std::exp(-0.5 * z * z);
  }
  const double sum = Sum(kernel);
  for (double& part : kernel) part /= sum;
  return kernel;
}

// The Pearson divergence of the best trials from all trials, minus the average divergence of the
// same number of trials that are drawn at random.
double Divergence(const Column& column) {
  const double n = Sum(column.all);
  const double k = Sum(column.best);
  if (k == 0 || k == n || n <= 1) return 0;
  const double width = kScott * kDeviationOfUniform * std::pow(n, -0.2);
  const size_t bins = column.all.size();
  std::vector<double> density(bins, 0);
  std::vector<double> density_of_best(bins, 0);
  std::vector<double> squares(bins, 0);
  for (size_t from = 0; from < bins; ++from) {
    if (column.all[from] == 0) continue;
    const std::vector<double> kernel = Kernel(column, from, width);
    for (size_t to = 0; to < bins; ++to) {
      density[to] += column.all[from] / n * kernel[to];
      density_of_best[to] += column.best[from] / k * kernel[to];
      squares[to] += column.all[from] / n * kernel[to] * kernel[to];
    }
  }
  double divergence = 0;
  double variance = 0;  // of the kernel of one random draw around the density
  for (size_t i = 0; i < bins; ++i) {
    if (!(density[i] > 0)) continue;
    const double apart = density_of_best[i] - density[i];
    divergence += apart * apart / density[i];
    variance += (squares[i] - density[i] * density[i]) / density[i];
  }
  // (n - k) / (n - 1) corrects for drawing without replacement.
  return std::max(0.0, divergence - variance * (n - k) / (k * (n - 1)));
}

// The results with a finite value, from the best to the worst.
struct Ranking {
  std::vector<size_t> order;
  std::vector<double> values;  // in this order
};

Ranking Rank(const Objective& objective, const std::vector<TrialResult>& results) {
  std::vector<std::pair<double, size_t>> values;
  for (size_t i = 0; i < results.size(); ++i) {
    const double value = objective.ValueIn(results[i].metrics);
    if (std::isfinite(value)) values.emplace_back(value, i);
  }
  std::ranges::stable_sort(
      values, [&](const auto& a, const auto& b) { return objective.Better(a.first, b.first); });
  Ranking ranking;
  for (const auto& [value, result] : values) {
    ranking.order.push_back(result);
    ranking.values.push_back(value);
  }
  return ranking;
}

// Whether each result is among the best. None is if too few results have a finite value.
std::vector<bool> BestOf(const Ranking& ranking, const Weights& weights) {
  const double part = std::ceil(kBestPart * Sum(weights));
  const double wanted = std::max(static_cast<double>(kFewestBest), part);
  std::vector<bool> best(weights.size(), false);
  if (ranking.order.size() < kFewestBest) return best;
  double taken = 0;
  for (size_t i = 0; i < ranking.order.size(); ++i) {
    const bool tied = i > 0 && ranking.values[i] == ranking.values[i - 1];
    if (taken >= wanted && !tied) break;
    best[ranking.order[i]] = true;
    taken += weights[ranking.order[i]];
  }
  return best;
}

double ImportanceOf(const Values& values, const Weights& weights,
                    const std::vector<bool>& is_best) {
  const auto* list = std::get_if<CategoricalDomain>(&values.parameter->domain);
  const Column column = list != nullptr ? ColumnOfList(*list, values, weights, is_best)
                                        : ColumnOfNumbers(values, weights, is_best);
  double best = 0;
  for (size_t i = 0; i < weights.size(); ++i) best += is_best[i] ? weights[i] : 0;
  const double part_of_best = Sum(column.best) / best;
  if (!(part_of_best > 0)) return 0;
  const double part_of_all = Sum(column.all) / Sum(weights);
  return part_of_best * part_of_best / part_of_all * Divergence(column);
}

// The share of each parameter. All are 0 if no parameter separates the best trials.
std::vector<double> SharesOf(const std::vector<Values>& parameters, const Weights& weights,
                             const std::vector<bool>& is_best) {
  std::vector<double> shares;
  for (const Values& values : parameters) shares.push_back(ImportanceOf(values, weights, is_best));
  const double sum = Sum(shares);
  for (double& share : shares) share = sum > 0 ? share / sum : 0;
  return shares;
}

// A draw from the Poisson distribution with mean 1.
double PoissonWeight(double uniform) {
  double density = std::exp(-1.0);
  double count = 0;
  for (double below = density; uniform >= below && count < kMostCopies; below += density)
    density /= ++count;
  return count;
}

// The weights of the trials in each resample.
std::vector<Weights> Resamples(const std::vector<TrialResult>& results) {
  std::vector<Weights> resamples(kResamples, Weights(results.size()));
  for (size_t i = 0; i < results.size(); ++i) {
    RandomStream random(kSeed, results[i].trial, "importance");
    for (Weights& weights : resamples) weights[i] = PoissonWeight(random.Uniform());
  }
  return resamples;
}

// The standard deviation of each parameter's share over the resamples.
std::vector<double> DeviationsOf(const std::vector<Values>& parameters, const Ranking& ranking,
                                 const std::vector<TrialResult>& results) {
  std::vector<double> sums(parameters.size(), 0);
  std::vector<double> squares(parameters.size(), 0);
  double resamples = 0;
  for (const Weights& weights : Resamples(results)) {
    const std::vector<double> shares = SharesOf(parameters, weights, BestOf(ranking, weights));
    if (Sum(shares) == 0) continue;
    ++resamples;
    for (size_t i = 0; i < shares.size(); ++i) {
      sums[i] += shares[i];
      squares[i] += shares[i] * shares[i];
    }
  }
  std::vector<double> deviations(parameters.size(), 1);
  for (size_t i = 0; i < parameters.size() && resamples > 1; ++i) {
    const double mean = sums[i] / resamples;
    const double variance = (squares[i] - resamples * mean * mean) / (resamples - 1);
    deviations[i] = std::sqrt(std::max(0.0, variance));
  }
  return deviations;
}

// The largest of 1, 2, 3, 4, 6, 8, 12, 16 … that is not above `step`. REQUIRES: step >= 1.
Step RoundedDown(Step step) {
  int64_t power = 1;
  while (power <= step.value / 2) power *= 2;
  const int64_t between = power + power / 2;
  return Step(step.value >= between ? between : power);
}

}  // namespace

Step CommonStep(const std::vector<TrialProgress>& trials, const std::vector<Step>& rungs,
                Step last_step) {
  std::vector<Step> steps;
  int64_t over = 0;
  for (const TrialProgress& trial : trials) {
    if (trial.step < Step(1)) continue;
    steps.push_back(trial.step);
    over += trial.over ? 1 : 0;
  }
  if (steps.empty()) return Step(0);
  std::ranges::sort(steps, std::greater{});
  const int64_t wanted = std::max((over + 1) / 2, std::min(kFewestResults, std::ssize(steps)));
  const Step reached = steps[static_cast<size_t>(wanted - 1)];
  Step common(0);
  for (const Step rung : rungs) {
    if (rung <= reached) common = std::max(common, rung);
  }
  if (common > Step(0)) return common;
  if (last_step > Step(0) && reached >= last_step) return last_step;
  return RoundedDown(reached);
}

Importances ImportancesOf(const SearchSpace& space, const Objective& objective,
                          const std::vector<TrialResult>& results) {
  Importances answer{.trials = std::ssize(results)};
  const auto none = [&](std::string reason) {
    answer.reason = std::move(reason);
    return answer;
  };
  if (answer.trials < kFewestResults)
    return none("importance needs " + std::to_string(kFewestResults) +
                " trials that can be compared; so far there are " + std::to_string(answer.trials));
  const Weights weights(results.size(), 1);
  const Ranking ranking = Rank(objective, results);
  const std::vector<bool> is_best = BestOf(ranking, weights);
  answer.best = std::ranges::count(is_best, true);
  if (answer.best == 0)
    return none("fewer than " + std::to_string(kFewestBest) + " trials have a finite value of " +
                objective.metric);
  if (answer.best == answer.trials) return none("all trials have the same " + objective.metric);

  std::vector<Values> parameters;
  for (const Parameter& parameter : space.parameters()) {
    if (!std::holds_alternative<ConstantDomain>(parameter.domain))
      parameters.push_back(ValuesOf(parameter, results));
  }
  const std::vector<double> shares = SharesOf(parameters, weights, is_best);
  if (Sum(shares) == 0)
    return none("no parameter separates the best trials from the others better than chance");
  const std::vector<double> deviations = DeviationsOf(parameters, ranking, results);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const double wide = kDeviationsToEachSide * deviations[i];
    answer.parameters.push_back({.parameter = parameters[i].parameter->name,
                                 .share = shares[i],
                                 .low = std::max(0.0, shares[i] - wide),
                                 .high = std::min(1.0, shares[i] + wide)});
  }
  std::ranges::stable_sort(answer.parameters, std::greater{}, &Importance::share);
  return answer;
}

}  // namespace attune
