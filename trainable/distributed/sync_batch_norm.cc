#include "attune/sync_batch_norm.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/functional/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "attune/error.h"

namespace attune::inline sdk {
namespace {

namespace nn = torch::nn;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Statistics of a global batch, by feature, identical bit for bit on every rank. Like all data that
// is sent, they are double, so that splitting a batch costs no precision.
struct Statistics {
  at::Tensor mean;     // [features]
  at::Tensor squares;  // [features]: the sum of squared deviations from the mean
  at::Tensor count;    // []: values of one feature
};

// The number of values of each feature. Empty batches need special care, because LibTorch's kernels
// would divide by zero.
std::int64_t CountValues(const at::Tensor& input) {
  return input.numel() == 0 ? 0 : input.numel() / input.size(1);
}

at::Tensor DoubleZeros(std::initializer_list<std::int64_t> shape, const at::Tensor& like) {
  return at::zeros(shape, like.options().dtype(at::kDouble).memory_format(std::nullopt));
}

// Combines the statistics of the ranks by the method of Chan, Golub and LeVeque (Updating Formulae
// and a Pairwise Algorithm for Computing Sample Variances, 1979), which subtracts no square of a
// mean.
Statistics GangStatistics(const at::Tensor& input, c10d::ProcessGroup& group) {
  const at::NoGradGuard no_grad;
  const std::int64_t features = input.size(1);
  const std::int64_t local_count = CountValues(input);
  at::Tensor local = DoubleZeros({2 * features + 1}, input);
  if (local_count > 0) {
    const bool is_short = input.scalar_type() == at::kHalf || input.scalar_type() == at::kBFloat16;
    const auto [mean, variance] =
        at::batch_norm_update_stats(is_short ? input.to(at::kFloat) : input, {}, {}, 0);
    local[0].fill_(local_count);
    local.slice(0, 1, 1 + features).copy_(mean);
    local.slice(0, 1 + features).copy_(variance).mul_(local_count);
  }
  const at::Tensor gathered = DoubleZeros({group.getSize(), local.numel()}, input);
  std::vector<std::vector<at::Tensor>> outputs{gathered.unbind(0)};
  std::vector<at::Tensor> inputs{local};
  group.allgather(outputs, inputs)->wait();

  const at::Tensor counts = gathered.slice(1, 0, 1);
  const at::Tensor means = gathered.slice(1, 1, 1 + features);
  const at::Tensor count = counts.sum();
  // If this rank has two values, the check is unnecessary; on a GPU, item() would wait for the
  // device.
  if (local_count < 2 && count.item<std::int64_t>() < 2) {
    throw Error("SyncBatchNorm: the ranks' batches together have " +
                std::to_string(count.item<std::int64_t>()) +
                " values for each feature; training needs at least two");
  }
  const at::Tensor mean = (means * counts).sum(0) / count;
  const at::Tensor squares =
      (gathered.slice(1, 1 + features) + counts * (means - mean).square()).sum(0);
  return {mean, squares, count};
}

// Returns (input - mean) / sqrt(variance + eps) × weight + bias, for each feature.
at::Tensor Normalise(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                     const at::Tensor& mean, const at::Tensor& variance, double eps) {
  return std::get<0>(at::native_batch_norm(input, weight, bias, mean, variance, /*training=*/false,
                                           /*momentum=*/0, eps));
}

// Normalises by statistics that depend on the inputs of all ranks. With dy the gradient of the
// output, x̂ the normalised input, and sums over the whole batch of n values,
//   dx = weight / σ × (dy - Σ dy / n - x̂ × Σ (dy × x̂) / n).
class Normalisation : public torch::autograd::Function<Normalisation> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& weight, const at::Tensor& bias,
                            const at::Tensor& mean, const at::Tensor& variance,
                            const at::Tensor& count, double eps, c10d::ProcessGroup* group) {
    context->save_for_backward({input, weight, mean, variance, count});
    context->saved_data["eps"] = eps;
    context->saved_data["group"] =
        c10::IValue::make_capsule(c10::intrusive_ptr<c10d::ProcessGroup>::reclaim_copy(group));
    return CountValues(input) == 0 ? at::empty_like(input)
                                   : Normalise(input, weight, bias, mean, variance, eps);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (at::GradMode::is_enabled()) {
      throw Error("SyncBatchNorm: its gradient cannot be differentiated again (create_graph)");
    }
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &input = saved[0], &weight = saved[1], &mean = saved[2], &variance = saved[3];
    const double eps = context->saved_data["eps"].toDouble();
    const bool needs_input_gradient = context->needs_input_grad(0);
    // Gradients of this rank's values, as if the statistics did not depend on them.
    at::Tensor input_gradient = at::empty_like(input);
    at::Tensor weight_gradient = at::zeros_like(weight);
    at::Tensor bias_gradient = at::zeros_like(weight);
    if (CountValues(input) > 0) {
      std::tie(input_gradient, weight_gradient, bias_gradient) = at::native_batch_norm_backward(
          gradients[0].contiguous(input.suggest_memory_format()), input, weight, mean, variance,
          /*save_mean=*/{}, /*save_invstd=*/{}, /*train=*/false, eps,
          {needs_input_gradient, true, true});
    }
    if (needs_input_gradient) {
      const auto group = c10::static_intrusive_pointer_cast<c10d::ProcessGroup>(
          context->saved_data["group"].toCapsule());
      std::vector<at::Tensor> sums{at::stack({weight_gradient, bias_gradient}).to(at::kDouble)};
      group->allreduce(sums)->wait();
      if (CountValues(input) > 0) {
        const at::Tensor shares = -sums[0] / saved[4] * weight * (variance + eps).rsqrt();
        const at::Tensor shares_of_type = shares.to(weight.scalar_type());
        input_gradient.add_(
            Normalise(input, shares_of_type[0], shares_of_type[1], mean, variance, eps));
      }
    }
    return {input_gradient, weight_gradient, bias_gradient, {}, {}, {}, {}, {}};
  }
};

template <typename Visit>
bool VisitIfBatchNorm(nn::Module& module, const Visit& visit) {
  const auto visit_if = [&](auto* norm) { return norm != nullptr && (visit(*norm), true); };
  return visit_if(module.as<nn::BatchNorm1dImpl>()) || visit_if(module.as<nn::BatchNorm2dImpl>()) ||
         visit_if(module.as<nn::BatchNorm3dImpl>());
}

// Collects the names of batch norms that are not in a Sequential.
void CollectMembers(nn::Module& module, const std::string& name, std::string& names) {
  for (const auto& child : module.named_children()) {
    const std::string path = name.empty() ? child.key() : name + "." + child.key();
    const bool is_norm = VisitIfBatchNorm(*child.value(), [](auto&) {});
    if (is_norm && module.as<nn::SequentialImpl>() == nullptr) {
      names += (names.empty() ? "" : ", ") + path;
    }
    CollectMembers(*child.value(), path, names);
  }
}

}  // namespace

at::Tensor SyncBatchNormImpl::forward(const at::Tensor& input) {
  _check_input_dim(input);
  double factor = options.momentum().value_or(0);
  if (is_training() && options.track_running_stats()) {
    num_batches_tracked += 1;
    // Without momentum, the running statistics are means over all batches.
    if (!options.momentum()) factor = 1 / num_batches_tracked.item<double>();
  }
  if (!is_training() || group_ == nullptr) {
    return nn::functional::detail::batch_norm(input, running_mean, running_var, weight, bias,
                                              is_training() || !options.track_running_stats(),
                                              factor, options.eps());
  }
  const Statistics statistics = GangStatistics(input, *group_);
  if (options.track_running_stats()) {
    const at::NoGradGuard no_grad;
    const at::Tensor unbiased = statistics.squares / (statistics.count - 1);
    running_mean.mul_(1 - factor).add_(statistics.mean.to(running_mean.scalar_type()), factor);
    running_var.mul_(1 - factor).add_(unbiased.to(running_var.scalar_type()), factor);
  }
  const at::TensorOptions like =
      options.affine() ? weight.options() : statistics.mean.options().dtype(input.scalar_type());
  const std::int64_t features = options.num_features();
  return Normalisation::apply(input, options.affine() ? weight : at::ones({features}, like),
                              options.affine() ? bias : at::zeros({features}, like),
                              statistics.mean.to(like.dtype()),
                              (statistics.squares / statistics.count).to(like.dtype()),
                              statistics.count, options.eps(), group_);
}

void SyncBatchNormImpl::_check_input_dim(const at::Tensor& input) {
  if (input.dim() >= 2 && input.size(1) == options.num_features()) return;
  throw Error("SyncBatchNorm: expected [samples, " + std::to_string(options.num_features()) +
              " features, ...], got " + c10::str(input.sizes()));
}

void SyncBatchNormImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << "attune::SyncBatchNorm(" << options.num_features()
         << ", eps=" << options.eps() << ", momentum=";
  if (options.momentum()) {
    stream << *options.momentum();
  } else {
    stream << "None";
  }
  stream << ", affine=" << options.affine()
         << ", track_running_stats=" << options.track_running_stats() << ")";
}

template <typename BatchNorm>
std::shared_ptr<SyncBatchNormImpl> SyncBatchNormImpl::From(const BatchNorm& norm) {
  auto sync = std::make_shared<SyncBatchNormImpl>(norm.options);
  if (norm.options.affine()) {
    sync->parameters_["weight"] = sync->weight = norm.weight;
    sync->parameters_["bias"] = sync->bias = norm.bias;
  }
  if (norm.options.track_running_stats()) {
    sync->running_mean.set_data(norm.running_mean);
    sync->running_var.set_data(norm.running_var);
    sync->num_batches_tracked.set_data(norm.num_batches_tracked);
  }
  sync->train(norm.is_training());
  return sync;
}

void ConvertSyncBatchNorm(torch::nn::Module& model) {
  std::string members;
  CollectMembers(model, "", members);
  if (!members.empty() || VisitIfBatchNorm(model, [](auto&) {})) {
    throw Error(
        "ConvertSyncBatchNorm: only modules of a Sequential can be replaced; write "
        "attune::SyncBatchNorm in place of " +
        (members.empty() ? "the batch norm itself" : members));
  }
  for (const auto& module : model.modules()) {
    auto* sequential = module->as<nn::SequentialImpl>();
    if (sequential == nullptr) continue;
    const auto names = sequential->named_children().keys();
    for (std::size_t i = 0; i < names.size(); ++i) {
      nn::AnyModule& held = *(sequential->begin() + static_cast<std::ptrdiff_t>(i));
      const std::shared_ptr<nn::Module> before = held.ptr();
      VisitIfBatchNorm(*before, [&](const auto& norm) {
        auto sync = SyncBatchNormImpl::From(norm);
        sequential->replace_module(names[i], sync);
        held = nn::AnyModule(std::move(sync));
      });
    }
  }
}

}  // namespace attune::inline sdk
