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

// The end of a path in the tree: a quadratic bowl over numbers that no other path has.
struct Leaf {
  double floor = 0;  // smallest loss
  double steepness = 1;
  std::vector<double> best;  // position of the smallest loss, each coordinate in [0, 1]
};

std::string NumberName(const std::string& path, size_t i) { return "x" + std::to_string(i) + path; }

// Adds all lists below this path, and the numbers at the leaves. A path consists of the chosen
// values, such as "_1_0". The list at that path is named "branch_1_0".
void AddBelow(const std::string& path, std::vector<Condition> when, size_t depth,
              const std::vector<int64_t>& widths, size_t numbers,
              std::vector<Parameter>& parameters) {
  if (depth == widths.size()) {
    for (size_t i = 0; i < numbers; ++i) {
      parameters.push_back({NumberName(path, i), FloatDomain{.min = 0, .max = 1}, when});
    }
    return;
  }
  const std::string list = "branch" + path;
  CategoricalDomain values;
  for (int64_t value = 0; value < widths[depth]; ++value) values.values.emplace_back(value);
  parameters.push_back({list, values, std::move(when)});
  for (int64_t value = 0; value < widths[depth]; ++value) {
    AddBelow(path + "_" + std::to_string(value), {{.parent = list, .any_of = {value}}}, depth + 1,
             widths, numbers, parameters);
  }
}

// `widths`: the number of values in the lists of each level. The leaves are in the order of the
// paths.
Problem Tree(const char* name, const std::vector<int64_t>& widths, std::vector<Leaf> leaves) {
  const size_t numbers = leaves.front().best.size();
  std::vector<Parameter> parameters;
  AddBelow("", {}, 0, widths, numbers, parameters);
  auto loss = [widths, leaves = std::move(leaves)](const Config& config) {
    std::string path;
    size_t leaf_index = 0;
    for (const int64_t width : widths) {
      const auto value = std::get<int64_t>(*config.Find("branch" + path));
      path += "_" + std::to_string(value);
      leaf_index = leaf_index * static_cast<size_t>(width) + static_cast<size_t>(value);
    }
    const Leaf& leaf = leaves[leaf_index];
    double sum = 0;
    for (size_t i = 0; i < leaf.best.size(); ++i) {
      const double offset = std::get<double>(*config.Find(NumberName(path, i))) - leaf.best[i];
      sum += offset * offset;
    }
    return leaf.floor + leaf.steepness * sum;
  };
  return {name, static_cast<int>(widths.size() + numbers), SearchSpace(std::move(parameters)),
          std::move(loss), 0};
}

// Bowls of steepness 1. One has the floor 0; the floors of the others are between 0 and `highest`.
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
