#include "trainable/checkpoints/optimizer_state.h"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <algorithm>
#include <charconv>
#include <concepts>
#include <memory>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "attune/error.h"

namespace attune::inline sdk::trainable {
namespace {

namespace optim = torch::optim;

// The fields of each optimizer's state, in one place for reading and writing. `visit` takes a name
// and a reference to a tensor or to an int64_t.
template <typename State, typename Visit>
requires std::same_as<std::remove_const_t<State>, optim::SGDParamState>
void VisitFields(State& state, Visit visit) { visit("momentum_buffer", state.momentum_buffer()); }

template <typename State, typename Visit>
requires std::same_as<std::remove_const_t<State>, optim::AdamParamState> ||
    std::same_as<std::remove_const_t<State>, optim::AdamWParamState>
void VisitFields(State& state, Visit visit) {
  visit("step", state.step());
  visit("exp_avg", state.exp_avg());
  visit("exp_avg_sq", state.exp_avg_sq());
  visit("max_exp_avg_sq", state.max_exp_avg_sq());
}

template <typename State, typename Visit>
requires std::same_as<std::remove_const_t<State>, optim::RMSpropParamState>
void VisitFields(State& state, Visit visit) {
  visit("step", state.step());
  visit("square_avg", state.square_avg());
  visit("momentum_buffer", state.momentum_buffer());
  visit("grad_avg", state.grad_avg());
}

template <typename State, typename Visit>
requires std::same_as<std::remove_const_t<State>, optim::AdagradParamState>
void VisitFields(State& state, Visit visit) {
  visit("step", state.step());
  visit("sum", state.sum());
}

// Their hyperparameters, likewise. `visit` takes a name and a reference to a double, a bool, or a
// pair of doubles.
template <typename Visit>
void VisitFields(optim::SGDOptions& options, Visit visit) {
  visit("lr", options.lr());
  visit("momentum", options.momentum());
  visit("dampening", options.dampening());
  visit("weight_decay", options.weight_decay());
  visit("nesterov", options.nesterov());
}

template <typename Options, typename Visit>
requires std::same_as<Options, optim::AdamOptions> || std::same_as<Options, optim::AdamWOptions>
void VisitFields(Options& options, Visit visit) {
  visit("lr", options.lr());
  visit("betas", options.betas());
  visit("eps", options.eps());
  visit("weight_decay", options.weight_decay());
  visit("amsgrad", options.amsgrad());
}

template <typename Visit>
void VisitFields(optim::RMSpropOptions& options, Visit visit) {
  visit("lr", options.lr());
  visit("alpha", options.alpha());
  visit("eps", options.eps());
  visit("weight_decay", options.weight_decay());
  visit("momentum", options.momentum());
  visit("centered", options.centered());
}

template <typename Visit>
void VisitFields(optim::AdagradOptions& options, Visit visit) {
  visit("lr", options.lr());
  visit("lr_decay", options.lr_decay());
  visit("weight_decay", options.weight_decay());
  visit("initial_accumulator_value", options.initial_accumulator_value());
  visit("eps", options.eps());
}

template <typename TheState, typename TheOptions>
struct OptimizerKind {
  using State = TheState;
  using Options = TheOptions;
};

// Calls `use` with the optimizer's kind.
template <typename Use>
void WithKind(const optim::Optimizer& optimizer, Use use) {
  if (dynamic_cast<const optim::SGD*>(&optimizer))
    return use(OptimizerKind<optim::SGDParamState, optim::SGDOptions>());
  if (dynamic_cast<const optim::Adam*>(&optimizer))
    return use(OptimizerKind<optim::AdamParamState, optim::AdamOptions>());
  if (dynamic_cast<const optim::AdamW*>(&optimizer))
    return use(OptimizerKind<optim::AdamWParamState, optim::AdamWOptions>());
  if (dynamic_cast<const optim::RMSprop*>(&optimizer))
    return use(OptimizerKind<optim::RMSpropParamState, optim::RMSpropOptions>());
  if (dynamic_cast<const optim::Adagrad*>(&optimizer))
    return use(OptimizerKind<optim::AdagradParamState, optim::AdagradOptions>());
  throw Error(
      "checkpoint: the state of SGD, Adam, AdamW, RMSprop and Adagrad can be written and read; "
      "write another optimizer's state as a TensorMap");
}

std::vector<at::Tensor> ParametersOf(const optim::Optimizer& optimizer) {
  std::vector<at::Tensor> parameters;
  for (const auto& group : optimizer.param_groups()) {
    parameters.insert(parameters.end(), group.params().begin(), group.params().end());
  }
  return parameters;
}

// "3.exp_avg" → (3, "exp_avg").
std::pair<std::size_t, std::string> SplitKey(const std::string& key, const std::string& where) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
  if (error != std::errc() || end == key.data() + key.size() || *end != '.') {
    throw Error(where + ": \"" + key + "\" is no state of an optimizer");
  }
  return {index, std::string(end + 1, key.data() + key.size())};
}

std::string GroupKey(std::size_t group, const char* field) {
  return std::string(kGroupPrefix) + std::to_string(group) + "." + field;
}

at::Tensor AsTensor(double value) { return at::scalar_tensor(value, at::kDouble); }
at::Tensor AsTensor(bool value) { return at::scalar_tensor(value, at::kBool); }
at::Tensor AsTensor(const std::tuple<double, double>& value) {
  return at::tensor({std::get<0>(value), std::get<1>(value)}, at::kDouble);
}

void FromTensor(const at::Tensor& tensor, double& value) { value = tensor.item<double>(); }
void FromTensor(const at::Tensor& tensor, bool& value) { value = tensor.item<bool>(); }
void FromTensor(const at::Tensor& tensor, std::tuple<double, double>& value) {
  value = {tensor[0].item<double>(), tensor[1].item<double>()};
}

// Takes the hyperparameters out of `tensors`; the optimizer is
// not changed before Apply().
template <typename Options>
struct Hyperparameters {
  std::vector<Options> groups;

  Hyperparameters(const optim::Optimizer& optimizer, TensorMap& tensors, const std::string& where) {
    const auto is_one = [](const auto& item) { return item.first.starts_with(kGroupPrefix); };
    if (std::ranges::none_of(tensors, is_one)) return;
    for (const auto& group : optimizer.param_groups()) {
      Options& options = groups.emplace_back(static_cast<const Options&>(group.options()));
      VisitFields(options, [&](const char* field, auto& value) {
        const std::string key = GroupKey(groups.size() - 1, field);
        const auto found = tensors.find(key);
        if (found == tensors.end()) throw Error(where + ": has no hyperparameter " + key);
        if (found->second.sizes() != AsTensor(value).sizes()) {
          throw Error(where + ": " + key + " is " + Shape(found->second) + ", not " +
                      Shape(AsTensor(value)));
        }
        FromTensor(found->second, value);
        tensors.erase(found);
      });
    }
    const auto other = std::ranges::find_if(tensors, is_one);
    if (other == tensors.end()) return;
    throw Error(where + ": \"" + other->first +
                "\" is of another kind of optimizer, or of more than " +
                std::to_string(groups.size()) + " groups of parameters");
  }

  void Apply(optim::Optimizer& optimizer) const {
    for (std::size_t i = 0; i < groups.size(); ++i) {
      static_cast<Options&>(optimizer.param_groups()[i].options()) = groups[i];
    }
  }
};

}  // namespace

TensorMap StateOf(const optim::Optimizer& optimizer, bool hyperparameters) {
  TensorMap tensors;
  WithKind(optimizer, [&]<typename Kind>(Kind) {
    using State = typename Kind::State;
    const std::vector<at::Tensor> parameters = ParametersOf(optimizer);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto found = optimizer.state().find(parameters[i].unsafeGetTensorImpl());
      if (found == optimizer.state().end()) continue;
      const auto& state = static_cast<const State&>(*found->second);
      VisitFields(state, [&](const char* field, const auto& value) {
        const std::string key = std::to_string(i) + "." + field;
        if constexpr (std::integral<std::remove_cvref_t<decltype(value)>>) {
          tensors[key] = at::scalar_tensor(value, at::kLong);
        } else if (value.defined()) {
          tensors[key] = value;
        }
      });
    }
    if (!hyperparameters) return;
    for (std::size_t i = 0; i < optimizer.param_groups().size(); ++i) {
      auto options =
          static_cast<const typename Kind::Options&>(optimizer.param_groups()[i].options());
      VisitFields(options, [&](const char* field, const auto& value) {
        tensors[GroupKey(i, field)] = AsTensor(value);
      });
    }
  });
  return tensors;
}

void LoadState(optim::Optimizer& optimizer, const TensorMap& saved, const std::string& where,
               const CopiedFunction& copied) {
  WithKind(optimizer, [&]<typename Kind>(Kind) {
    using State = typename Kind::State;
    TensorMap tensors = saved;
    const Hyperparameters<typename Kind::Options> hyperparameters(optimizer, tensors, where);
    const std::vector<at::Tensor> parameters = ParametersOf(optimizer);
    std::map<std::size_t, std::unique_ptr<State>> states;
    std::set<std::string> known;
    for (const auto& [key, tensor] : tensors) {
      const std::size_t index = SplitKey(key, where).first;
      if (index >= parameters.size()) {
        throw Error(where + ": holds state of parameter " + std::to_string(index) +
                    ", the optimizer has " + std::to_string(parameters.size()));
      }
      states.try_emplace(index, std::make_unique<State>());
    }
    for (auto& [index, state] : states) {
      const at::Tensor& parameter = parameters[index];
      VisitFields(*state, [&, i = index](const char* field, auto& value) {
        const std::string key = std::to_string(i) + "." + field;
        const auto found = tensors.find(key);
        if (found == tensors.end()) return;
        known.insert(key);
        if constexpr (std::integral<std::remove_cvref_t<decltype(value)>>) {
          value = found->second.template item<std::int64_t>();
        } else {
          if (found->second.sizes() != parameter.sizes()) {
            throw Error(where + ": " + key + " is " + Shape(found->second) + ", its parameter is " +
                        Shape(parameter));
          }
          // A copy in any case: what is read may lie in the checkpoint's file.
          value = found->second.to(parameter.device(), found->second.scalar_type(),
                                   /*non_blocking=*/false, /*copy=*/true);
          if (copied) copied(found->second);
        }
      });
    }
    for (const auto& [key, tensor] : tensors) {
      if (!known.contains(key)) {
        throw Error(where + ": \"" + key + "\" is not a state of this kind of optimizer");
      }
    }
    hyperparameters.Apply(optimizer);
    optimizer.state().clear();
    for (auto& [index, state] : states) {
      optimizer.state()[parameters[index].unsafeGetTensorImpl()] = std::move(state);
    }
  });
}

}  // namespace attune::inline sdk::trainable
