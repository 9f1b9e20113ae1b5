#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"
#include "core/base/random.h"
#include "core/space/domain.h"
#include "core/space/search_space.h"

namespace attune::conformance {

// Draws a valid space of one to six parameters: ranges with and without steps, log scales, listed
// values of every type, constants, and conditions on one or two other parameters. With `countable`,
// no real range lacks steps.
inline SearchSpace RandomSpace(uint64_t seed, bool countable) {
  RandomStream random(seed, TrialNumber(0), "conformance/space");
  const auto coin = [&] { return random.Integer(0, 1) == 1; };

  const auto domain = [&]() -> Domain {
    const Scale scale = coin() ? Scale::kLog : Scale::kLinear;
    const double offset = scale == Scale::kLog ? 0 : 2;
    switch (random.Integer(0, 4)) {
      case 0: {
        FloatDomain real{.min = random.Uniform(0.001, 1) - offset, .scale = scale};
        real.max = real.min + random.Uniform(0, 10);
        if (countable || coin()) real.step = random.Uniform(2, 5);
        return real;
      }
      case 1: {
        IntDomain integer{.min = random.Integer(1, 9) - static_cast<int64_t>(2 * offset),
                          .scale = scale,
                          .step = random.Integer(1, 3)};
        integer.max = integer.min + random.Integer(0, 4);
        return integer;
      }
      case 2:
        return CategoricalDomain{{std::string("sgd"), std::string("adamw"), int64_t{3}, 0.5}};
      case 3:
        return CategoricalDomain{{true, false}};
      default:
        return ConstantDomain{random.Integer(0, 9)};
    }
  };

  // Parents are created first. Then all parameters are listed in a random order.
  std::vector<Parameter> parameters;
  const int64_t count = random.Integer(1, 6);
  for (int64_t i = 0; i < count; ++i) {
    Parameter parameter{"p" + std::to_string(i), domain(), {}};
    for (int64_t conditions = random.Integer(0, 2); conditions > 0 && i > 0; --conditions) {
      const Parameter& parent = parameters[static_cast<size_t>(random.Integer(0, i - 1))];
      if (std::ranges::find(parameter.when, parent.name, &Condition::parent) !=
          parameter.when.end())
        continue;
      Condition condition{.parent = parent.name};
      if (const auto values = CountValues(parent.domain)) {
        condition.any_of.push_back(ValueAt(parent.domain, random.Integer(0, *values - 1)));
      } else {
        const auto& range = std::get<FloatDomain>(parent.domain);
        condition.at_least = random.Uniform(range.min, range.max);
      }
      parameter.when.push_back(condition);
    }
    parameters.push_back(parameter);
  }
  for (int64_t i = count - 1; i > 0; --i) {
    std::swap(parameters[static_cast<size_t>(i)],
              parameters[static_cast<size_t>(random.Integer(0, i))]);
  }
  ATTUNE_CHECK(SearchSpace::Check(parameters).empty());
  return SearchSpace(std::move(parameters));
}

// Like RandomSpace, with one more real range whose steps are not binary fractions. Its scale is
// linear or logarithmic, and it may have a condition.
inline SearchSpace RandomSpaceWithSteps(uint64_t seed, bool countable) {
  std::vector<Parameter> parameters = RandomSpace(seed, countable).parameters();
  const Scale scale = seed % 2 == 0 ? Scale::kLog : Scale::kLinear;
  const double max =
      0.1 + 0.1 * static_cast<double>(2 + seed % 6);  // sometimes larger than the last step
  Parameter stepped{"ps", FloatDomain{.min = 0.1, .max = max, .scale = scale, .step = 0.1}};
  const Parameter& parent = parameters.front();
  const auto values = CountValues(parent.domain);
  if (seed % 3 == 1 && values) {
    stepped.when = {{.parent = parent.name, .any_of = {ValueAt(parent.domain, *values - 1)}}};
  }
  parameters.insert(parameters.begin(), std::move(stepped));
  ATTUNE_CHECK(SearchSpace::Check(parameters).empty());
  return SearchSpace(std::move(parameters));
}

}  // namespace attune::conformance
