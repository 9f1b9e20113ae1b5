#pragma once

#include <torch/nn/modules/batchnorm.h>

#include <memory>
#include <ostream>

namespace c10d {
class ProcessGroup;
}

// Not part of attune/attune.h, since it includes a part of torch/nn.
namespace attune::inline sdk {

namespace trainable {
class GradientSync;
}

// Batch norm (Ioffe and Szegedy, ICML 2015) whose statistics in training are those of the whole
// gang's batch rather than of a rank's share, which may be too small for good ones: outputs and
// gradients are those of one process that has the whole batch. Shares may differ in size, and one
// of them may be empty. As Python's torch.nn.SyncBatchNorm.
//
// Write attune::SyncBatchNorm where you would write torch::nn::BatchNorm1d, 2d or 3d: options
// are the same, input is [samples, features, ...], and so are the names and shapes of parameters
// and buffers, so that a checkpoint of one is a checkpoint of the other.
//
// Context::PrepareModel() makes it of the gang. Before that, in evaluation, and in a gang of one it
// is plain batch norm. In training every rank makes the same forwards and backwards, also while
// NoSync lives: a forward sends 2 × features + 1 numbers, a backward 2 × features. It cannot be
// differentiated twice.
//
// Throws attune::Error where the input has fewer than two dimensions, and where the whole batch has
// but one value for each feature.
class SyncBatchNormImpl
    : public torch::nn::NormImplBase<0, SyncBatchNormImpl, torch::nn::BatchNormOptions> {
 public:
  using NormImplBase::NormImplBase;  // from BatchNormOptions, or the number of features

  // The input normalised, of the same shape.
  at::Tensor forward(const at::Tensor& input);

  // As torch::nn's modules print themselves.
  void pretty_print(std::ostream& stream) const override;

 private:
  friend class trainable::GradientSync;
  friend void ConvertSyncBatchNorm(torch::nn::Module& model);

  template <typename BatchNorm>
  static std::shared_ptr<SyncBatchNormImpl> From(const BatchNorm& norm);
  void _check_input_dim(const at::Tensor& input) override;

  c10d::ProcessGroup* group_ = nullptr;  // the gang's, once PrepareModel() has seen the module
};
TORCH_MODULE(SyncBatchNorm);

// Puts a SyncBatchNorm in the place of each BatchNorm1d, 2d and 3d of the model's Sequentials, at
// whatever depth, with the same parameters, statistics and mode. Call it before PrepareModel();
// an optimizer may have been made before.
//
// A module that a class holds in a member of its own type, such as `torch::nn::BatchNorm2d bn1`,
// cannot be exchanged from outside. Throws attune::Error, naming each batch norm of that kind,
// before anything has been changed; write attune::SyncBatchNorm there.
void ConvertSyncBatchNorm(torch::nn::Module& model);

}  // namespace attune::inline sdk
