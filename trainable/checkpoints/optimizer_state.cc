#include "trainable/checkpoints/optimizer_state.h"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <algorithm>
#include <charconv>
#include <concepts>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "attune/error.h"

namespace attune::inline sdk::trainable {
namespace {

namespace optim = torch::optim;

// For which elements a tensor of a state has values.
enum class Extent {
  kParameter,      // one value for each element of its parameter
  kAllParameters,  // one value for each element of all parameters
  kOne,            // a single value
};

// The fields of each optimizer's state, in one place for reading and writing. `visit` takes a name,
// a reference to a tensor, a queue of tensors or a number, and the extent of the tensors if it is
// not kParameter.
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

// LBFGS keeps one state, with the first parameter. `al` is scratch space of a step.
template <typename State, typename Visit>
requires std::same_as<std::remove_const_t<State>, optim::LBFGSParamState>
void VisitFields(State& state, Visit visit) {
  visit("func_evals", state.func_evals());
  visit("n_iter", state.n_iter());
  visit("t", state.t());
  visit("prev_loss", state.prev_loss());
  visit("d", state.d(), Extent::kAllParameters);
  visit("H_diag", state.H_diag(), Extent::kOne);
  visit("prev_flat_grad", state.prev_flat_grad(), Extent::kAllParameters);
  visit("old_dirs", state.old_dirs(), Extent::kAllParameters);
  visit("old_stps", state.old_stps(), Extent::kAllParameters);
  visit("ro", state.ro(), Extent::kOne);
}

// The hyperparameters of each optimizer. `visit` takes a name and a reference to a value that
// AsTensor() accepts.
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

template <typename Visit>
void VisitFields(optim::LBFGSOptions& options, Visit visit) {
  visit("lr", options.lr());
  visit("max_iter", options.max_iter());
  visit("max_eval", options.max_eval());
  visit("tolerance_grad", options.tolerance_grad());
  visit("tolerance_change", options.tolerance_change());
  visit("history_size", options.history_size());
  visit("line_search_fn", options.line_search_fn());
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
  if (dynamic_cast<const optim::LBFGS*>(&optimizer))
    return use(OptimizerKind<optim::LBFGSParamState, optim::LBFGSOptions>());
  throw Error(
      "checkpoint: the state of SGD, Adam, AdamW, RMSprop, Adagrad and LBFGS can be written and "
      "read; write another optimizer's state as a TensorMap");
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
    throw Error(where + ": \"" + key + "\" is not a state of an optimizer");
  }
  return {index, std::string(end + 1, key.data() + key.size())};
}

std::string GroupKey(std::size_t group, const char* field) {
  return std::string(kGroupPrefix) + std::to_string(group) + "." + field;
}

constexpr std::int64_t kNoMaximum = -1;              // saved if LBFGS has no max_eval
constexpr const char* kLineSearch = "strong_wolfe";  // the only line search of LBFGS

at::Tensor AsTensor(double value) { return at::scalar_tensor(value, at::kDouble); }
at::Tensor AsTensor(bool value) { return at::scalar_tensor(value, at::kBool); }
at::Tensor AsTensor(std::int64_t value) { return at::scalar_tensor(value, at::kLong); }
at::Tensor AsTensor(std::optional<std::int64_t> maximum) {
  return AsTensor(maximum.value_or(kNoMaximum));
}
at::Tensor AsTensor(const std::optional<std::string>& line_search) {
  return AsTensor(line_search.has_value());
}
at::Tensor AsTensor(const std::tuple<double, double>& value) {
  return at::tensor({std::get<0>(value), std::get<1>(value)}, at::kDouble);
}
// The last two return an undefined tensor if there is nothing to save.
at::Tensor AsTensor(const at::Tensor& value) { return value; }
at::Tensor AsTensor(const std::deque<at::Tensor>& values) {
  if (values.empty()) return {};
  return at::stack(std::vector<at::Tensor>(values.begin(), values.end()));
}

void FromTensor(const at::Tensor& tensor, double& value) { value = tensor.item<double>(); }
void FromTensor(const at::Tensor& tensor, bool& value) { value = tensor.item<bool>(); }
void FromTensor(const at::Tensor& tensor, std::int64_t& value) {
  value = tensor.item<std::int64_t>();
}
void FromTensor(const at::Tensor& tensor, std::optional<std::int64_t>& maximum) {
  maximum = tensor.item<std::int64_t>();
  if (maximum == kNoMaximum) maximum.reset();
}
void FromTensor(const at::Tensor& tensor, std::optional<std::string>& line_search) {
  line_search.reset();
  if (tensor.item<bool>()) line_search = kLineSearch;
}
void FromTensor(const at::Tensor& tensor, std::tuple<double, double>& value) {
  value = {tensor[0].item<double>(), tensor[1].item<double>()};
}

template <typename T>
concept IsTensors = std::same_as<T, at::Tensor> || std::same_as<T, std::deque<at::Tensor>>;

// Copies a saved tensor into an optimizer's state. It always copies, because `saved` may be a view
// of the checkpoint's file.
void CopyTo(const at::Tensor& saved, const at::Tensor& parameter, at::Tensor& value) {
  value = saved.to(parameter.device(), saved.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
}
void CopyTo(const at::Tensor& saved, const at::Tensor& parameter, std::deque<at::Tensor>& values) {
  at::Tensor all;
  CopyTo(saved, parameter, all);
  // Each clone starts at an aligned address, like the tensors of LBFGS; results may depend on that.
  for (const at::Tensor& value : all.unbind(0)) values.push_back(value.clone());
}

// The required sizes of a tensor with this extent.
std::vector<std::int64_t> SizesOf(Extent extent, const at::Tensor& parameter,
                                  const std::vector<at::Tensor>& parameters) {
  if (extent == Extent::kOne) return {};
  if (extent == Extent::kParameter) return parameter.sizes().vec();
  std::int64_t elements = 0;
  for (const at::Tensor& each : parameters) elements += each.numel();
  return {elements};
}

// Checks that the queues of LBFGS have the same length, and shortens them to the history size of
// its options.
void CheckAndTrimQueues(optim::LBFGSParamState& state, const optim::LBFGSOptions& options,
                        const std::string& where) {
  if (state.old_dirs().size() != state.old_stps().size() ||
      state.old_dirs().size() != state.ro().size()) {
    throw Error(where + ": old_dirs, old_stps and ro of LBFGS have different lengths");
  }
  while (std::ssize(state.ro()) > std::max<std::int64_t>(0, options.history_size())) {
    state.old_dirs().pop_front();
    state.old_stps().pop_front();
    state.ro().pop_front();
  }
}

// Moves the hyperparameters out of `tensors`. The optimizer does not change before Apply().
template <typename Options>
struct Hyperparameters {
  std::vector<Options> groups;

  Hyperparameters(const optim::Optimizer& optimizer, TensorMap& tensors, const std::string& where) {
    const auto is_hyperparameter = [](const auto& item) {
      return item.first.starts_with(kGroupPrefix);
    };
    if (std::ranges::none_of(tensors, is_hyperparameter)) return;
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
    const auto other = std::ranges::find_if(tensors, is_hyperparameter);
    if (other == tensors.end()) return;
    throw Error(where + ": \"" + other->first +
                "\" belongs to another kind of optimizer, or to more than " +
                std::to_string(groups.size()) + " groups of parameters");
  }

  // The options of the first group after Apply().
  const Options& FirstGroup(const optim::Optimizer& optimizer) const {
    return groups.empty() ? static_cast<const Options&>(optimizer.param_groups()[0].options())
                          : groups[0];
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
      VisitFields(state, [&](const char* field, const auto& value, Extent = Extent::kParameter) {
        const at::Tensor tensor = AsTensor(value);
        if (tensor.defined()) tensors[std::to_string(i) + "." + field] = tensor;
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
        throw Error(where + ": has state of parameter " + std::to_string(index) +
                    ", the optimizer has " + std::to_string(parameters.size()));
      }
      states.try_emplace(index, std::make_unique<State>());
    }
    for (auto& [index, state] : states) {
      const at::Tensor& parameter = parameters[index];
      const auto read = [&, i = index]<typename T>(const char* field, T& value,
                                                   Extent extent = Extent::kParameter) {
        const std::string key = std::to_string(i) + "." + field;
        const auto found = tensors.find(key);
        if (found == tensors.end()) return;
        known.insert(key);
        const at::Tensor& tensor = found->second;
        if constexpr (IsTensors<T>) {
          std::vector<std::int64_t> sizes = SizesOf(extent, parameter, parameters);
          if constexpr (std::same_as<T, std::deque<at::Tensor>>) {
            sizes.insert(sizes.begin(), tensor.dim() == 0 ? 0 : tensor.size(0));
          }
          if (tensor.sizes() != sizes) {
            throw Error(where + ": " + key + " is " + Shape(tensor) + ", but must be " +
                        c10::str(at::IntArrayRef(sizes)));
          }
          CopyTo(tensor, parameter, value);
          if (copied) copied(tensor);
        } else {
          if (tensor.numel() != 1) {
            throw Error(where + ": " + key + " is " + Shape(tensor) + ", but must be one number");
          }
          FromTensor(tensor, value);
        }
      };
      VisitFields(*state, read);
    }
    for (const auto& [key, tensor] : tensors) {
      if (!known.contains(key)) {
        throw Error(where + ": \"" + key + "\" is not a state of this kind of optimizer");
      }
    }
    if constexpr (std::same_as<State, optim::LBFGSParamState>) {
      for (auto& [index, state] : states) {
        CheckAndTrimQueues(*state, hyperparameters.FirstGroup(optimizer), where);
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
