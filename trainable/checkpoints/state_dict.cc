#include "trainable/checkpoints/state_dict.h"

#include <torch/nn/module.h>
#include <torch/types.h>

#include "attune/error.h"

namespace attune::inline sdk::trainable {

std::string Shape(const at::Tensor& tensor) {
  return c10::str(tensor.sizes(), " of ", c10::toString(tensor.scalar_type()));
}

TensorMap StateOf(const torch::nn::Module& module) {
  TensorMap state;
  for (const auto& item : module.named_parameters()) state[item.key()] = item.value();
  for (const auto& item : module.named_buffers()) state[item.key()] = item.value();
  return state;
}

void LoadState(torch::nn::Module& module, const TensorMap& state, const std::string& where,
               const CopiedFunction& copied) {
  const TensorMap module_state = StateOf(module);
  for (const auto& [name, tensor] : state) {
    if (!module_state.contains(name)) throw Error(where + ": the model has no tensor " + name);
  }
  for (const auto& [name, tensor] : module_state) {
    const auto found = state.find(name);
    if (found == state.end()) throw Error(where + ": has no tensor " + name);
    if (found->second.sizes() != tensor.sizes() ||
        found->second.scalar_type() != tensor.scalar_type()) {
      throw Error(where + ": tensor " + name + " is " + Shape(found->second) + ", the model's is " +
                  Shape(tensor));
    }
  }
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : module_state) {
    const at::Tensor& saved = state.at(name);
    at::Tensor(tensor).copy_(saved);
    if (copied) copied(saved);
  }
}

}  // namespace attune::inline sdk::trainable
