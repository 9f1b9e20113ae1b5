#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "benchmarks/searchers/problems.h"
#include "core/base/random.h"

namespace attune::benchmarks {
namespace {

// What a way down the tree ends in: a bowl over numbers that no other way has.
struct Leaf {
  double floor = 0;  // its smallest loss
  double steepness = 1;
  std::vector<double> best;  // where that is, each in [0, 1]
};

std::string Number(const std::string& way, size_t i) { return "x" + std::to_string(i) + way; }

// Every list below this place, and the numbers at the ends: a place is the values chosen so far,
// "_1_0", and a list carries its name, "branch_1_0".
void AddBelow(const std::string& way, std::vector<Condition> when, size_t depth,
              const std::vector<int64_t>& widths, size_t numbers,
              std::vector<Parameter>& parameters) {
  if (depth == widths.size()) {
    for (size_t i = 0; i < numbers; ++i) {
      parameters.push_back({Number(way, i), FloatDomain{.min = 0, .max = 1}, when});
    }
    return;
  }
  const std::string list = "branch" + way;
  CategoricalDomain values;
  for (int64_t value = 0; value < widths[depth]; ++value) values.values.emplace_back(value);
  parameters.push_back({list, values, std::move(when)});
  for (int64_t value = 0; value < widths[depth]; ++value) {
    AddBelow(way + "_" + std::to_string(value), {{.parent = list, .any_of = {value}}}, depth + 1,
             widths, numbers, parameters);
  }
}

// So many values in each list on the way down; the leaves stand in the order of the ways.
Problem Tree(const char* name, const std::vector<int64_t>& widths, std::vector<Leaf> leaves) {
  const size_t numbers = leaves.front().best.size();
  std::vector<Parameter> parameters;
  AddBelow("", {}, 0, widths, numbers, parameters);
  auto loss = [widths, leaves = std::move(leaves)](const Config& config) {
    std::string way;
    size_t place = 0;
    for (const int64_t width : widths) {
      const auto value = std::get<int64_t>(*config.Find("branch" + way));
      way += "_" + std::to_string(value);
      place = place * static_cast<size_t>(width) + static_cast<size_t>(value);
    }
    const Leaf& leaf = leaves[place];
    double sum = 0;
    for (size_t i = 0; i < leaf.best.size(); ++i) {
      const double off = std::get<double>(*config.Find(Number(way, i))) - leaf.best[i];
      sum += off * off;
    }
    return leaf.floor + leaf.steepness * sum;
  };
  return {name, static_cast<int>(widths.size() + numbers), SearchSpace(std::move(parameters)),
          std::move(loss), 0};
}

// Bowls of steepness one whose floors lie between 0 and `highest`, one of them at 0.
std::vector<Leaf> Bowls(size_t count, size_t numbers, double highest, RandomStream& random) {
  std::vector<Leaf> leaves(count);
  for (Leaf& leaf : leaves) {
    leaf.floor = random.Uniform(0, highest);
    for (size_t i = 0; i < numbers; ++i) leaf.best.push_back(random.Uniform(0, 1));
  }
  const int64_t best = random.Integer(0, static_cast<int64_t>(count) - 1);
  leaves[static_cast<size_t>(best)].floor = 0;
  return leaves;
}

}  // namespace

std::vector<Problem> BranchingProblems(uint64_t instance) {
  std::vector<Problem> problems;
  {
    RandomStream random(instance, TrialNumber(0), "narrow branch");
    auto leaves = Bowls(2, 2, 0, random);
    leaves[0].steepness = 30;
    leaves[1].floor = 0.3;
    problems.push_back(Tree("the better of two is narrow", {2}, std::move(leaves)));
  }
  {
    RandomStream random(instance, TrialNumber(0), "eight alike");
    problems.push_back(Tree("eight, equally steep", {8}, Bowls(8, 3, 0.3, random)));
  }
  {
    RandomStream random(instance, TrialNumber(0), "eight unlike");
    auto leaves = Bowls(8, 3, 0.3, random);
    for (Leaf& leaf : leaves) leaf.steepness = std::exp2(random.Uniform(-3, 3));
    problems.push_back(Tree("eight, from flat to steep", {8}, std::move(leaves)));
  }
  {
    RandomStream random(instance, TrialNumber(0), "three of three");
    auto leaves = Bowls(9, 2, 0.5, random);
    for (Leaf& leaf : leaves) {
      if (leaf.floor == 0) leaf.steepness = 4;
    }
    problems.push_back(Tree("three of three, the best narrow", {3, 3}, std::move(leaves)));
  }
  return problems;
}

}  // namespace attune::benchmarks
