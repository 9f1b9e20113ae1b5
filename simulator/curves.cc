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
constexpr double kNoise = 0.004;         // the largest deviation of a report, in both directions
constexpr double kDivergingShare = 0.8;  // above this difficulty a diverging curve turns to NaN

// The position of a value in its domain, from 0 to 1.
double PositionIn(const Domain& domain, const Value& value) {
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

class ModelCurves final : public Curves {
 public:
  ModelCurves(Shape shape, Objective objective, const SearchSpace& space, Step horizon,
              uint64_t seed)
      : shape_(shape),
        objective_(std::move(objective)),
        space_(space),
        horizon_(std::max(1.0, static_cast<double>(horizon.value))),
        seed_(seed) {
    RandomStream random(seed, TrialNumber{}, "simulate/optimum");
    for (size_t i = 0; i < space.parameters().size(); ++i) optimum_.push_back(random.Uniform());
  }

  double ValueAt(TrialNumber trial, const Config& config, Step step) const override {
    RandomStream random(seed_, trial, "simulate/curve");
    Shape shape = shape_;
    if (shape == Shape::kMixed) shape = static_cast<Shape>(random.Integer(0, 5));
    const double difficulty =
        std::clamp(Difficulty(config) + random.Uniform(-0.05, 0.05), 0.0, 1.0);
    const double turn =
        random.Uniform(0.2, 0.8);  // where the curve bends, as a share of the horizon
    const double t = static_cast<double>(step.value) / horizon_;
    if (shape == Shape::kDiverging && difficulty > kDivergingShare && t > turn)
      return std::numeric_limits<double>::quiet_NaN();

    const double floor = 0.05 + 0.7 * difficulty;
    RandomStream noise(seed_ + static_cast<uint64_t>(step.value), trial, "simulate/noise");
    const double loss = floor + (kStart - floor) * RemainingShare(shape, t, turn, difficulty) +
                        noise.Uniform(-kNoise, kNoise);
    return objective_.mode == Mode::kMin ? loss : 1 - loss;
  }

 private:
  // The share of the distance to the floor that remains at time `t`: 1 at the start, 0 at the
  // floor.
  static double RemainingShare(Shape shape, double t, double turn, double difficulty) {
    switch (shape) {
      case Shape::kExponential:
      case Shape::kDiverging:
        return std::exp(-4 * t);
      case Shape::kCrossing:
        return std::exp(-t * (2 + 10 * difficulty));
      case Shape::kLateBloomer:
        return 1 / (1 + std::exp(20 * (t - turn)));
      case Shape::kPlateau:
        return t < turn ? 0.5 + 0.5 * std::exp(-12 * t) : 0.5 * std::exp(-12 * (t - turn));
      case Shape::kPowerLaw:
      case Shape::kMixed:
        break;
    }
    return std::pow(1 + 50 * t, -0.7);
  }

  // The distance of the configuration from the optimum, from 0 to 1.
  double Difficulty(const Config& config) const {
    double sum = 0;
    int active = 0;
    for (size_t i = 0; i < optimum_.size(); ++i) {
      const Parameter& parameter = space_.parameters()[i];
      const Value* value = config.Find(parameter.name);
      if (value == nullptr) continue;
      const double distance = PositionIn(parameter.domain, *value) - optimum_[i];
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
  std::vector<double> optimum_;  // one position in each parameter's domain
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
    return Error{ErrorCode::kInvalid,
                 "there is no curve model `" + std::string(model) + "`; known are " + known};
  }
  return {std::make_unique<ModelCurves>(static_cast<Shape>(found - CurveModels().begin()),
                                        objective, space, horizon, seed)};
}

}  // namespace attune::simulate
