#include "trainable/checkpoints/state_dict.h"

#include <torch/nn/module.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <charconv>
#include <concepts>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "attune/error.h"

namespace attune::trainable {
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

// Calls `use` with a value-initialised state of the optimizer's kind.
template <typename Use>
void WithStateType(const optim::Optimizer& optimizer, Use use) {
  if (dynamic_cast<const optim::SGD*>(&optimizer)) return use(optim::SGDParamState());
  if (dynamic_cast<const optim::Adam*>(&optimizer)) return use(optim::AdamParamState());
  if (dynamic_cast<const optim::AdamW*>(&optimizer)) return use(optim::AdamWParamState());
  if (dynamic_cast<const optim::RMSprop*>(&optimizer)) return use(optim::RMSpropParamState());
  if (dynamic_cast<const optim::Adagrad*>(&optimizer)) return use(optim::AdagradParamState());
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

std::string Shape(const at::Tensor& tensor) {
  return c10::str(tensor.sizes(), " of ", c10::toString(tensor.scalar_type()));
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

}  // namespace

TensorMap StateOf(const torch::nn::Module& module) {
  TensorMap state;
  for (const auto& item : module.named_parameters()) state[item.key()] = item.value();
  for (const auto& item : module.named_buffers()) state[item.key()] = item.value();
  return state;
}

void LoadState(torch::nn::Module& module, const TensorMap& state, const std::string& where) {
  const TensorMap own = StateOf(module);
  for (const auto& [name, tensor] : state) {
    if (!own.contains(name)) throw Error(where + ": the model has no tensor " + name);
  }
  for (const auto& [name, tensor] : own) {
    const auto found = state.find(name);
    if (found == state.end()) throw Error(where + ": has no tensor " + name);
    if (found->second.sizes() != tensor.sizes() ||
        found->second.scalar_type() != tensor.scalar_type()) {
      throw Error(where + ": tensor " + name + " is " + Shape(found->second) + ", the model's is " +
                  Shape(tensor));
    }
  }
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : own) at::Tensor(tensor).copy_(state.at(name));
}

TensorMap StateOf(const optim::Optimizer& optimizer) {
  TensorMap tensors;
  WithStateType(optimizer, [&]<typename State>(const State&) {
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
  });
  return tensors;
}

void LoadState(optim::Optimizer& optimizer, const TensorMap& tensors, const std::string& where) {
  WithStateType(optimizer, [&]<typename State>(const State&) {
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
        }
      });
    }
    for (const auto& [key, tensor] : tensors) {
      if (!known.contains(key)) {
        throw Error(where + ": \"" + key + "\" is not a state of this kind of optimizer");
      }
    }
    optimizer.state().clear();
    for (auto& [index, state] : states) {
      optimizer.state()[parameters[index].unsafeGetTensorImpl()] = std::move(state);
    }
  });
}

}  // namespace attune::trainable
