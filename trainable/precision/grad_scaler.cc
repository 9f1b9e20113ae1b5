#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "attune/amp.h"
#include "attune/error.h"
#include "trainable/distributed/gradients.h"

namespace attune::inline sdk {
namespace {

// Names in a saved state.
constexpr const char* kScale = "scale";
constexpr const char* kGrowthTracker = "growth_tracker";

const at::Tensor& ScalarIn(const TensorMap& state, const char* name) {
  const auto found = state.find(name);
  if (found == state.end() || found->second.numel() != 1) {
    throw Error(std::string("GradScaler: the saved state has no number `") + name +
                "`; it does not come from a GradScaler");
  }
  return found->second;
}

void Check(const GradScalerOptions& options) {
  const auto check = [](bool truth, const std::string& what) {
    if (!truth) throw Error("GradScaler: " + what);
  };
  check(options.init_scale > 0 && std::isfinite(options.init_scale),
        "init_scale must be positive and finite");
  check(options.growth_factor > 1, "growth_factor must be more than 1");
  check(options.backoff_factor > 0 && options.backoff_factor < 1,
        "backoff_factor must be between 0 and 1");
  check(options.growth_interval > 0, "growth_interval must be positive");
}

}  // namespace

struct GradScaler::State {
  struct StepState {       // state of an optimizer since the last update()
    at::Tensor found_inf;  // [1]: 1 if a gradient was not finite
    bool stepped = false;
  };

  const GradScalerOptions options;
  at::Tensor scale;           // float, [1]; moves to the device of the first loss
  at::Tensor growth_tracker;  // int, [1]: steps without an overflow
  std::map<const torch::optim::Optimizer*, StepState> step_states;

  StepState& Unscale(torch::optim::Optimizer& optimizer) {
    std::map<at::ScalarType, std::vector<at::Tensor>> gradients;
    std::set<const void*> visited;  // a parameter with two names occurs twice
    for (const auto& group : optimizer.param_groups()) {
      for (const at::Tensor& parameter : group.params()) {
        if (!parameter.grad().defined()) continue;
        if (parameter.grad().scalar_type() == at::kHalf) {
          throw Error(
              "GradScaler: a gradient has type Half, and unscaling it would lose small values; "
              "keep parameters in float and run the forward under Autocast");
        }
        if (!visited.insert(parameter.unsafeGetTensorImpl()).second) continue;
        at::Tensor values = trainable::GradientValues(parameter);
        gradients[values.scalar_type()].push_back(std::move(values));
      }
    }
    if (gradients.empty()) {
      throw Error(
          "GradScaler: no parameter of the optimizer has a gradient; first call backward() on the "
          "result of scale()");
    }
    const at::NoGradGuard no_grad;
    StepState step_state{.found_inf = at::zeros_like(scale)};
    // Computed in double, because the reciprocal of a large float is subnormal.
    const at::Tensor inverse = scale.to(at::kDouble).reciprocal().to(at::kFloat);
    for (auto& [type, tensors] : gradients) {
      at::_amp_foreach_non_finite_check_and_unscale_(tensors, step_state.found_inf, inverse);
    }
    return step_states[&optimizer] = std::move(step_state);
  }
};

GradScaler::GradScaler(GradScalerOptions options) {
  Check(options);
  state_.reset(new State{.options = options,
                         .scale = at::full({1}, options.init_scale, at::kFloat),
                         .growth_tracker = at::zeros({1}, at::kInt)});
}

GradScaler::~GradScaler() = default;
GradScaler::GradScaler(GradScaler&&) noexcept = default;
GradScaler& GradScaler::operator=(GradScaler&&) noexcept = default;

at::Tensor GradScaler::scale(const at::Tensor& loss) {
  if (!state_->options.enabled) return loss;
  if (state_->scale.device() != loss.device()) {
    state_->scale = state_->scale.to(loss.device());
    state_->growth_tracker = state_->growth_tracker.to(loss.device());
  }
  // Computed in float, because a scaled half-precision loss would be infinite at once.
  return loss.to(at::kFloat) * state_->scale.squeeze();
}

void GradScaler::unscale_(torch::optim::Optimizer& optimizer) {
  if (!state_->options.enabled) return;
  if (state_->step_states.contains(&optimizer)) {
    throw Error(
        "GradScaler: unscale_ was called, or the optimizer stepped, since the last update(); call "
        "it once per step");
  }
  state_->Unscale(optimizer);
}

bool GradScaler::step(torch::optim::Optimizer& optimizer) {
  if (!state_->options.enabled) {
    optimizer.step();
    return true;
  }
  const auto found = state_->step_states.find(&optimizer);
  State::StepState& step_state =
      found != state_->step_states.end() ? found->second : state_->Unscale(optimizer);
  if (step_state.stepped) {
    throw Error(
        "GradScaler: step was called twice since the last update(); call update() in between");
  }
  step_state.stepped = true;
  const bool finite = step_state.found_inf.item<float>() == 0;
  if (finite) optimizer.step();
  return finite;
}

void GradScaler::update() {
  if (!state_->options.enabled) return;
  if (state_->step_states.empty()) {
    throw Error("GradScaler: update() needs a step() before it");
  }
  at::Tensor found_inf = at::zeros_like(state_->scale);
  for (const auto& [optimizer, step_state] : state_->step_states) found_inf += step_state.found_inf;
  const GradScalerOptions& options = state_->options;
  at::_amp_update_scale_(state_->scale, state_->growth_tracker, found_inf, options.growth_factor,
                         options.backoff_factor, options.growth_interval);
  state_->step_states.clear();
}

double GradScaler::get_scale() const {
  return state_->options.enabled ? state_->scale.item<double>() : 1;
}

TensorMap GradScaler::state_dict() const {
  return {{kScale, state_->scale.clone()}, {kGrowthTracker, state_->growth_tracker.clone()}};
}

void GradScaler::load_state_dict(const TensorMap& state) {
  const at::Tensor& scale = ScalarIn(state, kScale);
  const at::Tensor& growth_tracker = ScalarIn(state, kGrowthTracker);
  state_->scale.copy_(scale.reshape({1}));
  state_->growth_tracker.copy_(growth_tracker.reshape({1}));
  state_->step_states.clear();
}

}  // namespace attune::inline sdk
