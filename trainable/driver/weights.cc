#include "trainable/driver/weights.h"

#include <torch/types.h>

#include <cstddef>
#include <string>

#include "attune/error.h"
#include "attune/worker_group.h"
#include "trainable/checkpoints/state_dict.h"

namespace attune::inline sdk::trainable {
namespace {

void CheckSameLayout(const TensorMap& first, const TensorMap& other, std::size_t worker) {
  const std::string who = "AverageWeights: worker " + std::to_string(worker);
  for (const auto& [name, tensor] : other) {
    if (!first.contains(name)) throw Error(who + " has a tensor " + name + ", worker 0 has none");
  }
  for (const auto& [name, tensor] : first) {
    const auto found = other.find(name);
    if (found == other.end()) throw Error(who + " has no tensor " + name + ", worker 0 has one");
    if (found->second.sizes() != tensor.sizes() ||
        found->second.scalar_type() != tensor.scalar_type()) {
      throw Error(who + ": tensor " + name + " is " + Shape(found->second) + ", worker 0's is " +
                  Shape(tensor));
    }
  }
}

}  // namespace

TensorMap MeanOf(const std::vector<TensorMap>& worker_weights) {
  for (std::size_t worker = 1; worker < worker_weights.size(); ++worker) {
    CheckSameLayout(worker_weights[0], worker_weights[worker], worker);
  }
  const at::NoGradGuard no_grad;
  TensorMap mean;
  for (const auto& [name, tensor] : worker_weights[0]) {
    if (!tensor.is_floating_point() && !tensor.is_complex()) {
      mean[name] = tensor.clone();
      continue;
    }
    at::Tensor sum = tensor.to(tensor.is_complex() ? at::kComplexDouble : at::kDouble,
                               /*non_blocking=*/false, /*copy=*/true);
    for (std::size_t worker = 1; worker < worker_weights.size(); ++worker) {
      sum.add_(worker_weights[worker].at(name));
    }
    mean[name] = sum.div_(static_cast<double>(worker_weights.size())).to(tensor.scalar_type());
  }
  return mean;
}

void PackWeights(torch::nn::Module& module, Packer& packer) { Pack(packer, StateOf(module)); }

void UnpackWeights(torch::nn::Module& module, Unpacker& unpacker) {
  LoadState(module, Unpack<TensorMap>(unpacker), "SetWeights");
}

}  // namespace attune::inline sdk::trainable
