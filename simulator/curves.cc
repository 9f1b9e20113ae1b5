#include "simulator/curves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include "base/result.h"
#include "core/base/random.h"
#include "core/space/domain.h"

namespace attune::simulate {
namespace {

enum class Shape { kPowerLaw, kExponential, kCrossing, kLateBloomer, kPlateau, kDiverging, kMixed };

constexpr double kStart = 0.95;          // the loss before training
constexpr double kNoise = 0.004;         // of a report, to either side
constexpr double kDivergingShare = 0.8;  // difficulty from which a diverging curve does

// Where a value lies in its domain, from 0 to 1.
double Place(const Domain& domain, const Value& value) {
  if (const auto count = CountValues(domain)) {
    if (*count <= 1) return 0.5;
    constexpr int64_t kSearched = 4096;
    for (int64_t i = 0; i < std::min(*count, kSearched); ++i) {
      if (SameSetting(ValueAt(domain, i), value))
        return static_cast<double>(i) / static_cast<double>(*count - 1);
    }
    return 1;
  }
  const auto* real = std::get_if<FloatDomain>(&domain);
  const auto number = AsNumber(value);
  if (real == nullptr || !number || real->max <= real->min) return 0.5;
  if (real->scale == Scale::kLog)
    return std::log(*number / real->min) / std::log(real->max / real->min);
  return (*number - real->min) / (real->max - real->min);
}

class MadeUp final : public Curves {
 public:
  MadeUp(Shape shape, Objective objective, const SearchSpace& space, Step horizon, uint64_t seed)
      : shape_(shape),
        objective_(std::move(objective)),
        space_(space),
        horizon_(std::max(1.0, static_cast<double>(horizon.value))),
        seed_(seed) {
    RandomStream random(seed, TrialNumber{}, "simulate/optimum");
    for (size_t i = 0; i < space.parameters().size(); ++i) optimum_.push_back(random.Uniform());
  }

  double ValueAt(TrialNumber trial, const Config& config, Step step) const override {
    RandomStream own(seed_, trial, "simulate/curve");
    Shape shape = shape_;
    if (shape == Shape::kMixed) shape = static_cast<Shape>(own.Integer(0, 5));
    const double difficulty = std::clamp(Difficulty(config) + own.Uniform(-0.05, 0.05), 0.0, 1.0);
    const double when = own.Uniform(0.2, 0.8);  // of the horizon: where its curve turns
    const double t = static_cast<double>(step.value) / horizon_;
    if (shape == Shape::kDiverging && difficulty > kDivergingShare && t > when)
      return std::numeric_limits<double>::quiet_NaN();

    const double floor = 0.05 + 0.7 * difficulty;
    RandomStream noise(seed_ + static_cast<uint64_t>(step.value), trial, "simulate/noise");
    const double loss = floor + (kStart - floor) * LeftToGo(shape, t, when, difficulty) +
                        noise.Uniform(-kNoise, kNoise);
    return objective_.mode == Mode::kMin ? loss : 1 - loss;
  }

 private:
  // The share of the way to the floor that is not gone yet, from 1 to 0.
  static double LeftToGo(Shape shape, double t, double when, double difficulty) {
    switch (shape) {
      case Shape::kExponential:
      case Shape::kDiverging:
        return std::exp(-4 * t);
      case Shape::kCrossing:
        return std::exp(-t * (2 + 10 * difficulty));
      case Shape::kLateBloomer:
        return 1 / (1 + std::exp(20 * (t - when)));
      case Shape::kPlateau:
        return t < when ? 0.5 + 0.5 * std::exp(-12 * t) : 0.5 * std::exp(-12 * (t - when));
      case Shape::kPowerLaw:
      case Shape::kMixed:
        break;
    }
    return std::pow(1 + 50 * t, -0.7);
  }

  // How far the configuration is from the best one: 0 to 1.
  double Difficulty(const Config& config) const {
    double sum = 0;
    int active = 0;
    for (size_t i = 0; i < optimum_.size(); ++i) {
      const Parameter& parameter = space_.parameters()[i];
      const Value* value = config.Find(parameter.name);
      if (value == nullptr) continue;
      const double distance = Place(parameter.domain, *value) - optimum_[i];
      sum += distance * distance;
      ++active;
    }
    return active == 0 ? 0.5 : std::sqrt(sum / active);
  }

  Shape shape_;
  Objective objective_;
  SearchSpace space_;
  double horizon_;
  uint64_t seed_;
  std::vector<double> optimum_;  // a place in its domain each
};

}  // namespace

const std::vector<std::string>& CurveModels() {
  static const std::vector<std::string> names = {
      "power-law", "exponential", "crossing", "late-bloomer", "plateau", "diverging", "mixed"};
  return names;
}

Result<std::unique_ptr<Curves>> MakeCurves(std::string_view model, const Objective& objective,
                                           const SearchSpace& space, Step horizon, uint64_t seed) {
  const auto found = std::ranges::find(CurveModels(), model);
  if (found == CurveModels().end()) {
    std::string known;
    for (const std::string& name : CurveModels()) known += (known.empty() ? "" : ", ") + name;
    return Error{ErrorCode::kInvalid, "there are no curves of the name `" + std::string(model) +
                                          "`; known are " + known};
  }
  return {std::make_unique<MadeUp>(static_cast<Shape>(found - CurveModels().begin()), objective,
                                   space, horizon, seed)};
}

}  // namespace attune::simulate
