#pragma once

#include <torch/nn/modules/batchnorm.h>

#include <memory>
#include <ostream>

namespace c10d {
class ProcessGroup;
}

// It is not included by attune/attune.h, because it includes a part of torch/nn.
namespace attune::inline sdk {

namespace trainable {
class GradientSync;
}

// Batch norm (Ioffe and Szegedy, ICML 2015) with training statistics over the batch of the whole
// gang. The share of one rank may be too small for good statistics. Outputs and gradients equal
// those of a single process with the whole batch. Shares may differ in size, and may be empty. It
// corresponds to torch.nn.SyncBatchNorm in Python.
//
// Use attune::SyncBatchNorm in place of torch::nn::BatchNorm1d, 2d or 3d. Options are the same, and
// the input is [samples, features, ...]. Parameters and buffers have the same names and shapes, so
// checkpoints are interchangeable.
//
// Context::PrepareModel() connects it to the gang. Before that, in evaluation, and in a gang of
// one, it is plain batch norm. In training, every rank must make the same forwards and backwards,
// even under NoSync. A forward sends 2 × features + 1 numbers, a backward 2 × features. It is not
// twice differentiable.
//
// Throws attune::Error if the input has fewer than two dimensions, or if the whole batch has only
// one value for each feature.
class SyncBatchNormImpl
    : public torch::nn::NormImplBase<0, SyncBatchNormImpl, torch::nn::BatchNormOptions> {
 public:
  using NormImplBase::NormImplBase;  // from BatchNormOptions, or the number of features

  // Returns the normalised input, with the same shape.
  at::Tensor forward(const at::Tensor& input);

  // Prints the module in the format of torch::nn.
  void pretty_print(std::ostream& stream) const override;

 private:
  friend class trainable::GradientSync;
  friend void ConvertSyncBatchNorm(torch::nn::Module& model);

  template <typename BatchNorm>
  static std::shared_ptr<SyncBatchNormImpl> From(const BatchNorm& norm);
  void _check_input_dim(const at::Tensor& input) override;

  c10d::ProcessGroup* group_ = nullptr;  // the gang's group; null before PrepareModel()
};
TORCH_MODULE(SyncBatchNorm);

// Replaces each BatchNorm1d, 2d and 3d in the model's Sequentials, at any depth, with a
// SyncBatchNorm. Parameters, statistics and mode stay the same. Call it before PrepareModel(). An
// optimizer may already exist.
//
// A batch norm in a typed class member, such as `torch::nn::BatchNorm2d bn1`, cannot be replaced
// from outside. In that case it throws attune::Error, naming each such batch norm, and changes
// nothing. Use attune::SyncBatchNorm as the member type.
void ConvertSyncBatchNorm(torch::nn::Module& model);

}  // namespace attune::inline sdk
