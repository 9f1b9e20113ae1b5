#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "attune/context.h"
#include "attune/error.h"

namespace attune::inline sdk {

// The type in which gradients are sent. A 16-bit type halves the traffic; sums are rounded to it,
// identically on every rank.
enum class GradientCompression {
  kNone,
  kFp16,  // 10 bits of fraction; values beyond 65504 become infinite
  kBf16,  // 7 bits of fraction, and the range of float
};

// Options of Context::PrepareModel().
struct DistributedModelOptions {
  // Copies rank 0's buffers (running statistics of batch norm) to every rank before each training
  // forward.
  bool broadcast_buffers = true;

  // Searches the graph of each forward for parameters that its backward will not reach. It is
  // needed if the path through the model differs from batch to batch, and costs one graph traversal
  // per step. The forward must return tensors, vectors or tuples of them, or a type with a function
  // `CollectTensors(const T&, std::vector<at::Tensor>&)` in its namespace.
  bool find_unused_parameters = false;

  // Promises that every synchronised backward reaches the same parameters, equally often, as the
  // first one of this process. It replaces find_unused_parameters: unreached parameters then cost
  // nothing, and no step traverses the graph. The first backward reduces gradients only at its end;
  // later ones reduce while they compute.
  //
  // If a later backward reaches a parameter that the first one did not, it fails with the c10
  // exception "Your training graph has changed". If a backward misses a parameter, the next forward
  // fails.
  bool static_graph = false;

  // Size of the buckets in which gradients are reduced. Each bucket is reduced as soon as backward
  // has filled it. The first bucket is smaller so that communication starts early (Li et al.,
  // PyTorch Distributed, VLDB 2020, §4.2).
  std::int64_t bucket_bytes = 25 << 20;
  std::int64_t first_bucket_bytes = 1 << 20;

  // Applies to gradients of type float. It has an effect only with more than one rank.
  GradientCompression gradient_compression = GradientCompression::kNone;
};

// Durations of a recent synchronised step on this rank, in seconds; see GradientSync::times().
struct GradientSyncTimes {
  double forward = 0;        // from the start of forward to the start of backward
  double backward = 0;       // computing gradients
  double communication = 0;  // from the start of the first all-reduce to the end of the last
  double overlap = 0;        // the part of `communication` during which backward was computing
};

namespace trainable {

// The part of DistributedModel that does not depend on the module's type. It owns the c10d::Reducer
// and calls it at the right times. One exists per model and process; every rank makes the same
// calls in the same order.
class GradientSync {
 public:
  GradientSync(torch::nn::Module& module, Context& context, const DistributedModelOptions& options);
  ~GradientSync();
  GradientSync(const GradientSync&) = delete;
  GradientSync& operator=(const GradientSync&) = delete;

  void BeforeForward();
  void AfterForward(const std::vector<at::Tensor>& outputs);
  void SyncBuffers();
  double ClipGradNorm(double max_norm, double norm_type, bool error_if_nonfinite);

  // Between Pause() and Resume(), backward leaves its gradients on this rank. Pairs of calls may
  // nest or overlap.
  void Pause();
  void Resume();

  bool find_unused_parameters() const;
  GradientSyncTimes times() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

inline void CollectTensors(const at::Tensor& tensor, std::vector<at::Tensor>& tensors) {
  tensors.push_back(tensor);
}
inline void CollectTensors(const std::vector<at::Tensor>& from, std::vector<at::Tensor>& tensors) {
  tensors.insert(tensors.end(), from.begin(), from.end());
}
template <typename... T>
void CollectTensors(const std::tuple<T...>& from, std::vector<at::Tensor>& tensors) {
  std::apply([&](const auto&... part) { (CollectTensors(part, tensors), ...); }, from);
}

// Whether the tensors in the result of a forward can be found; see `find_unused_parameters`.
template <typename T>
concept HoldsTensors = requires(const T& from, std::vector<at::Tensor>& tensors) {
  CollectTensors(from, tensors);
};

}  // namespace trainable

// While this guard exists, backward accumulates gradients on this rank only, for a large batch in
// several parts. Create it before the forward: the backward after a forward without a guard
// reduces. Every rank must skip the same steps. The first synchronised backward afterwards reduces
// the accumulated gradients. It is movable, for example into a std::optional. It must not outlive
// its model.
class NoSync {
 public:
  // Created by no_sync().
  explicit NoSync(trainable::GradientSync& sync) : sync_(&sync) { sync.Pause(); }

 private:
  struct Resume {
    void operator()(trainable::GradientSync* sync) const { sync->Resume(); }
  };
  std::unique_ptr<trainable::GradientSync, Resume> sync_;
};

namespace trainable {

// A module whose gradients are averaged over the gang during backward, created by
// Context::PrepareModel(). Call the model, not the module, so that synchronisation is prepared:
//
//   optimizer->zero_grad();
//   torch::cross_entropy_loss(model(images), labels).backward();
//   optimizer->step();
//
// After each backward, all ranks hold the same gradients, bit for bit, unless a NoSync exists. This
// also holds if two forwards run before their two backwards. The order of summation depends only on
// the model, so a resumed trial gets the same bits too.
//
// A model without trainable parameters is only copied to all ranks.
//
// The weights of torch::nn::Embedding and EmbeddingBag with `sparse(true)` have sparse gradients.
// Ranks may use different rows; the mean contains every row that any rank used. Sparse gradients
// need Gloo, so the model must be on CPUs.
//
// One step may train several models, and backward may pass through one to reach another, as in a
// GAN. Every rank must use them in the same order.
//
// With one rank, nothing is communicated and the module is used unchanged. Movable. A
// default-constructed model may only be assigned to.
//
// The public type is DistributedModel<torch::nn::Linear>, named after the module or its holder.
template <typename M>
class ModelOf {
 public:
  // Created by Context::PrepareModel().
  ModelOf() = default;
  ModelOf(std::shared_ptr<M> module, Context& context, const DistributedModelOptions& options)
      : module_(std::move(module)),
        sync_(std::make_unique<GradientSync>(*module_, context, options)) {}
  ModelOf(ModelOf&&) noexcept = default;
  // Destroys the previous model.
  ModelOf& operator=(ModelOf&& other) noexcept {
    sync_.reset();  // the Reducer refers to the module's parameters, so it must be destroyed first
    module_ = std::move(other.module_);
    sync_ = std::move(other.sync_);
    return *this;
  }

  // The module's forward().
  template <typename... Args>
  auto operator()(Args&&... args) {
    sync_->BeforeForward();
    auto output = module_->forward(std::forward<Args>(args)...);
    std::vector<at::Tensor> tensors;
    if (sync_->find_unused_parameters()) {
      if constexpr (HoldsTensors<decltype(output)>) {
        CollectTensors(output, tensors);
      } else {
        throw Error(
            "DistributedModel: find_unused_parameters must find the tensors that forward() "
            "returns; return tensors, vectors or tuples of them, or give your type a function "
            "CollectTensors(const T&, std::vector<at::Tensor>&) in its namespace");
      }
    }
    sync_->AfterForward(tensors);
    return output;
  }

  // Switches to training mode.
  void train() { module_->train(); }

  // Switches to evaluation mode and copies rank 0's buffers to every rank. All ranks then evaluate
  // the same model that a checkpoint would hold. Collective if the module has buffers.
  void eval() {
    sync_->SyncBuffers();
    module_->eval();
  }

  // Returns a guard; while it exists, gradients stay on this rank.
  [[nodiscard]] NoSync no_sync() { return NoSync(*sync_); }

  // Scales all gradients so that their total norm is at most `max_norm`, and returns the norm
  // before, like torch::nn::utils::clip_grad_norm_. Gradients are the same on every rank, so all
  // ranks compute the same norm without communication. Throws attune::Error if the last backward
  // was not synchronised, because each rank would scale differently. With `error_if_nonfinite`,
  // throws c10's exception if the norm is not finite.
  double clip_grad_norm_(double max_norm, double norm_type = 2, bool error_if_nonfinite = false) {
    return sync_->ClipGradNorm(max_norm, norm_type, error_if_nonfinite);
  }

  // Durations of a recent step; see GradientSyncTimes.
  GradientSyncTimes sync_times() const { return sync_->times(); }

  // The module. Calling its forward() directly does not synchronise gradients.
  M* operator->() const { return module_.get(); }
  M& operator*() const { return *module_; }
  const std::shared_ptr<M>& module() const { return module_; }

 private:
  std::shared_ptr<M> module_;
  std::unique_ptr<GradientSync> sync_;
};

}  // namespace trainable

template <typename M>
DistributedModel<M> Context::PrepareModel(std::shared_ptr<M> module) {
  return PrepareModel(std::move(module), DistributedModelOptions{});
}

template <typename M>
DistributedModel<M> Context::PrepareModel(std::shared_ptr<M> module,
                                          DistributedModelOptions options) {
  DistributedModel<M> model(std::move(module), *this, options);
  NotePreparedModel();
  return model;
}

template <typename M>
DistributedModel<M> Context::PrepareModel(const torch::nn::ModuleHolder<M>& module) {
  return PrepareModel(module.ptr(), DistributedModelOptions{});
}

template <typename M>
DistributedModel<M> Context::PrepareModel(const torch::nn::ModuleHolder<M>& module,
                                          DistributedModelOptions options) {
  return PrepareModel(module.ptr(), options);
}

}  // namespace attune::inline sdk
