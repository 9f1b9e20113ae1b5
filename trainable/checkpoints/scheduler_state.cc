#include "trainable/checkpoints/scheduler_state.h"

#include <torch/optim/schedulers/lr_scheduler.h>
#include <torch/optim/schedulers/reduce_on_plateau_scheduler.h>
#include <torch/types.h>

#include <concepts>
#include <type_traits>

#include "attune/error.h"

namespace attune::inline sdk::trainable {
namespace {

using torch::optim::LRScheduler;
using Plateau = torch::optim::ReduceLROnPlateauScheduler;

// LibTorch's schedulers have no public access to their position. An explicit instantiation may name
// private members ([temp.explicit]/12). Each instantiation here defines a function that returns a
// pointer to one.
template <typename Field>
struct PlateauField {
  using Type = Field Plateau::*;
};
struct Best : PlateauField<float> {
  friend Type Pointer(Best);
};
struct CooldownCounter : PlateauField<int> {
  friend Type Pointer(CooldownCounter);
};
struct LastEpoch : PlateauField<int> {
  friend Type Pointer(LastEpoch);
};
struct BadEpochs : PlateauField<int> {
  friend Type Pointer(BadEpochs);
};
struct StepCount {
  using Type = unsigned LRScheduler::*;
  friend Type Pointer(StepCount);
};

template <typename Name, typename Name::Type member>
struct Reveal {
  friend typename Name::Type Pointer(Name) { return member; }
};
template struct Reveal<Best, &Plateau::best>;
template struct Reveal<CooldownCounter, &Plateau::cooldown_counter>;
template struct Reveal<LastEpoch, &Plateau::last_epoch>;
template struct Reveal<BadEpochs, &Plateau::num_bad_epochs>;
template struct Reveal<StepCount, &LRScheduler::step_count_>;

// `visit` takes a name and a reference to a number.
template <typename Scheduler, typename Visit>
requires std::same_as<std::remove_const_t<Scheduler>, LRScheduler>
void VisitFields(Scheduler& scheduler, Visit visit) {
  visit("step_count", scheduler.*Pointer(StepCount()));
}

template <typename Scheduler, typename Visit>
requires std::same_as<std::remove_const_t<Scheduler>, Plateau>
void VisitFields(Scheduler& scheduler, Visit visit) {
  visit("best", scheduler.*Pointer(Best()));
  visit("cooldown_counter", scheduler.*Pointer(CooldownCounter()));
  visit("last_epoch", scheduler.*Pointer(LastEpoch()));
  visit("num_bad_epochs", scheduler.*Pointer(BadEpochs()));
}

template <typename Scheduler>
TensorMap FieldsOf(const Scheduler& scheduler) {
  TensorMap state;
  VisitFields(scheduler, [&](const char* name, auto value) {
    const bool real = std::floating_point<decltype(value)>;
    state[name] = at::scalar_tensor(value, real ? at::kDouble : at::kLong);
  });
  return state;
}

template <typename Scheduler>
void LoadFields(Scheduler& scheduler, const TensorMap& state, const std::string& where) {
  for (const auto& [name, saved] : FieldsOf(scheduler)) {
    const auto found = state.find(name);
    if (found != state.end() && found->second.numel() == 1) continue;
    throw Error(where + ": has no number " + name + ", so it is not of this kind of scheduler");
  }
  VisitFields(scheduler, [&](const char* name, auto& value) {
    value = static_cast<std::remove_reference_t<decltype(value)>>(state.at(name).item<double>());
  });
}

}  // namespace

TensorMap StateOf(const LRScheduler& scheduler) { return FieldsOf(scheduler); }
TensorMap StateOf(const Plateau& scheduler) { return FieldsOf(scheduler); }

void LoadState(LRScheduler& scheduler, const TensorMap& state, const std::string& where) {
  LoadFields(scheduler, state, where);
}

void LoadState(Plateau& scheduler, const TensorMap& state, const std::string& where) {
  LoadFields(scheduler, state, where);
}

}  // namespace attune::inline sdk::trainable
