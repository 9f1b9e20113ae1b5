#include "core/analysis/importance.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "core/space/domain.h"

namespace attune {
namespace {

constexpr double kBestPart = 0.1;
constexpr size_t kFewestBest = 5;
constexpr size_t kMostBins = 50;
constexpr double kScott = 1.06;
constexpr double kDeviationOfUniform = 0.288675;

// The values that trials have of a parameter, in bins, and which of them are among the best.
struct Column {
  std::vector<double> all;   // trials in each bin
  std::vector<double> best;  // how many of them are among the best
  std::vector<double> at;    // the rank of each bin, from 0 to 1; empty: the values have no order
};

double Sum(const std::vector<double>& parts) {
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

Column ColumnOfList(const CategoricalDomain& list, const std::string& name,
                    const std::vector<TrialResult>& results, const std::vector<bool>& is_best) {
  const std::vector<double> none(list.values.size(), 0);
  Column column{.all = none, .best = none, .at = {}};
  for (size_t i = 0; i < results.size(); ++i) {
    const Value* value = results[i].config.Find(name);
    for (size_t bin = 0; value != nullptr && bin < none.size(); ++bin) {
      if (!SameSetting(list.values[bin], *value)) continue;
      column.all[bin] += 1;
      if (is_best[i]) column.best[bin] += 1;
      break;
    }
  }
  return column;
}

// The divergence does not depend on the scale, so numbers are replaced by their ranks, which are
// spread evenly. Equal numbers are in the same bin.
Column ColumnOfNumbers(const std::string& name, const std::vector<TrialResult>& results,
                       const std::vector<bool>& is_best) {
  std::vector<std::pair<double, bool>> numbers;
  for (size_t i = 0; i < results.size(); ++i) {
    const Value* value = results[i].config.Find(name);
    const auto number = value == nullptr ? std::nullopt : AsNumber(*value);
    if (number) numbers.emplace_back(*number, is_best[i]);
  }
  std::ranges::sort(numbers);
  Column column;
  const double wide = std::ceil(static_cast<double>(numbers.size()) / kMostBins);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const bool same = i > 0 && numbers[i].first == numbers[i - 1].first;
    if (column.all.empty() || (!same && column.all.back() >= wide)) {
      column.all.push_back(0);
      column.best.push_back(0);
    }
    column.all.back() += 1;
    if (numbers[i].second) column.best.back() += 1;
  }
  double before = 0;
  for (const double count : column.all) {
    column.at.push_back((before + count / 2) / static_cast<double>(numbers.size()));
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
  if (k == 0 || k == n) return 0;
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

// Whether each result is among the best. None is if too few results have a finite value.
std::vector<bool> BestOf(const Objective& objective, const std::vector<TrialResult>& results) {
  std::vector<double> values;
  for (const TrialResult& result : results) {
    const double value = objective.ValueIn(result.metrics);
    if (std::isfinite(value)) values.push_back(value);
  }
  std::ranges::sort(values, [&](double a, double b) { return objective.Better(a, b); });
  const auto part = static_cast<size_t>(std::ceil(kBestPart * static_cast<double>(results.size())));
  const size_t wanted = std::max(kFewestBest, part);
  std::vector<bool> best(results.size(), false);
  if (values.size() < kFewestBest) return best;
  const double cutoff = values[std::min(wanted, values.size()) - 1];
  for (size_t i = 0; i < results.size(); ++i) {
    const double value = objective.ValueIn(results[i].metrics);
    best[i] = std::isfinite(value) && !objective.Worse(value, cutoff);
  }
  return best;
}

double ImportanceOf(const Parameter& parameter, const std::vector<TrialResult>& results,
                    const std::vector<bool>& is_best) {
  const auto* list = std::get_if<CategoricalDomain>(&parameter.domain);
  const Column column = list != nullptr ? ColumnOfList(*list, parameter.name, results, is_best)
                                        : ColumnOfNumbers(parameter.name, results, is_best);
  const double part_of_best =
      Sum(column.best) / static_cast<double>(std::ranges::count(is_best, true));
  if (part_of_best == 0) return 0;
  const double part_of_all = Sum(column.all) / static_cast<double>(results.size());
  return part_of_best * part_of_best / part_of_all * Divergence(column);
}

}  // namespace

Importances ImportancesOf(const SearchSpace& space, const Objective& objective,
                          const std::vector<TrialResult>& results) {
  Importances answer{.trials = std::ssize(results)};
  const auto none = [&](std::string reason) {
    answer.reason = std::move(reason);
    return answer;
  };
  if (answer.trials < kFewestResults)
    return none("importance needs " + std::to_string(kFewestResults) + " ended trials; so far " +
                std::to_string(answer.trials) + " have ended");
  const std::vector<bool> is_best = BestOf(objective, results);
  answer.best = std::ranges::count(is_best, true);
  if (answer.best == 0)
    return none("fewer than " + std::to_string(kFewestBest) + " trials have a value of " +
                objective.metric + " that is finite and within the constraints");
  if (answer.best == answer.trials) return none("all trials have the same " + objective.metric);

  double sum = 0;
  for (const Parameter& parameter : space.parameters()) {
    if (std::holds_alternative<ConstantDomain>(parameter.domain)) continue;
    const double importance = ImportanceOf(parameter, results, is_best);
    sum += importance;
    answer.parameters.push_back({parameter.name, importance});
  }
  if (sum == 0) {
    answer.parameters.clear();
    return none("no parameter separates the best trials from the others better than chance");
  }
  for (Importance& importance : answer.parameters) importance.share /= sum;
  std::ranges::stable_sort(answer.parameters, std::greater{}, &Importance::share);
  return answer;
}

}  // namespace attune
