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

// What gradients travel as. Halves what is sent; sums are rounded accordingly, alike on every rank.
enum class GradientCompression {
  kNone,
  kFp16,  // 10 bits of fraction; what is beyond 65504 becomes infinite
  kBf16,  // 7 bits of fraction, and the range of a float
};

// Of Context::PrepareModel().
struct DistributedModelOptions {
  // Give every rank rank 0's buffers (running statistics of batch norm) before each training
  // forward.
  bool broadcast_buffers = true;

  // Look through the graph of each forward for parameters that its backward will not reach. Needed
  // when the path through the model differs from batch to batch; costs a walk a step. The forward
  // has to return tensors, vectors or tuples of them, or a type with a function
  // `CollectTensors(const T&, std::vector<at::Tensor>&)` in its namespace.
  bool find_unused_parameters = false;

  // A promise: every synchronised backward reaches the same parameters, equally often, as the first
  // one of this process. Then parameters that no backward reaches cost nothing, and
  // find_unused_parameters, which this replaces, no walk a step. The first backward reduces only
  // when it is done; later ones while they compute. A parameter that the first backward did not
  // reach fails a later one that does, with c10's exception ("Your training graph has changed");
  // one that a backward leaves out fails the next forward.
  bool static_graph = false;

  // Gradients are reduced in buckets of this size, each as soon as backward has filled it; the
  // first is smaller so that communication starts early (Li et al., PyTorch Distributed, VLDB
  // 2020, §4.2).
  std::int64_t bucket_bytes = 25 << 20;
  std::int64_t first_bucket_bytes = 1 << 20;

  // For gradients of type float; needs a gang of more than one rank to have an effect.
  GradientCompression gradient_compression = GradientCompression::kNone;
};

// Times of a recent synchronised step on this rank, in seconds; see GradientSync::times().
struct GradientSyncTimes {
  double forward = 0;        // from its beginning to that of backward
  double backward = 0;       // computing gradients
  double communication = 0;  // from the first bucket's all-reduce to the last one's end
  double overlap = 0;        // the part of `communication` during which backward was computing
};

namespace trainable {

// The part of DistributedModel that does not depend on the module's type: c10d::Reducer and when
// to call what on it. One exists per model and process; every rank makes the same calls in the
// same order.
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

  // Between the two, backwards leave their gradients on this rank. Pairs of calls may nest or
  // overlap.
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

// Whether the tensors in a forward's result can be found; see `find_unused_parameters`.
template <typename T>
concept HoldsTensors = requires(const T& from, std::vector<at::Tensor>& tensors) {
  CollectTensors(from, tensors);
};

}  // namespace trainable

// While it lives, backward accumulates gradients on this rank alone, for a large batch in several
// parts. It has to be there before the forward: the next backward after a forward without it
// reduces. Every rank must skip the same steps; the first synchronised backward afterwards reduces
// what has been accumulated. It can be moved, for instance into a std::optional. It must not
// outlive its model.
class NoSync {
 public:
  // Made by no_sync().
  explicit NoSync(trainable::GradientSync& sync) : sync_(&sync) { sync.Pause(); }

 private:
  struct Resume {
    void operator()(trainable::GradientSync* sync) const { sync->Resume(); }
  };
  std::unique_ptr<trainable::GradientSync, Resume> sync_;
};

namespace trainable {

// A module whose gradients are averaged over the gang during backward, made by
// Context::PrepareModel(). Train through the model, so that synchronisation is prepared:
//
//   optimizer->zero_grad();
//   torch::cross_entropy_loss(model(images), labels).backward();
//   optimizer->step();
//
// After each backward all ranks hold the same gradients, bit for bit, also where two forwards come
// before their two backwards, unless NoSync says otherwise. What is added up in which order depends
// on the model alone, so that a resumed trial gets the same bits too.
//
// A model without a parameter that requires a gradient is only spread over the ranks.
//
// The weights of torch::nn::Embedding and EmbeddingBag with `sparse(true)` have sparse gradients.
// Ranks may touch different rows: the mean has every row that any rank touched. It needs Gloo, so a
// model on CPUs.
//
// Several models may be trained in one step, and backward may pass through one to reach another, as
// in a GAN; every rank goes through them in the same order.
//
// With one rank nothing is communicated and the module is used as it is. Movable; an empty model
// (default constructed) may only be assigned to.
//
// Its type is DistributedModel<torch::nn::Linear>, of the module or of its holder.
template <typename M>
class ModelOf {
 public:
  // Made by Context::PrepareModel().
  ModelOf() = default;
  ModelOf(std::shared_ptr<M> module, Context& context, const DistributedModelOptions& options)
      : module_(std::move(module)),
        sync_(std::make_unique<GradientSync>(*module_, context, options)) {}
  ModelOf(ModelOf&&) noexcept = default;
  // The model that it was before ends.
  ModelOf& operator=(ModelOf&& other) noexcept {
    sync_.reset();  // the Reducer hangs on the module's parameters and has to go first
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
            "DistributedModel: find_unused_parameters has to see the tensors that forward() "
            "returns; return tensors, vectors or tuples of them, or give your type a function "
            "CollectTensors(const T&, std::vector<at::Tensor>&) in its namespace");
      }
    }
    sync_->AfterForward(tensors);
    return output;
  }

  // Training mode.
  void train() { module_->train(); }

  // Evaluation mode with rank 0's buffers on every rank, so that all ranks evaluate the model that
  // a checkpoint would hold; collective when the module has buffers.
  void eval() {
    sync_->SyncBuffers();
    module_->eval();
  }

  // Gradients stay on this rank while the guard lives.
  [[nodiscard]] NoSync no_sync() { return NoSync(*sync_); }

  // Scales all gradients so that their norm, taken together, is at most `max_norm`, and returns
  // what it was; as torch::nn::utils::clip_grad_norm_. Gradients are the same on every rank, so all
  // come to the same norm without asking each other. Throws attune::Error when the last backward
  // was not synchronised, because each rank would scale by a number of its own; and where asked to,
  // c10's exception when the norm is not finite.
  double clip_grad_norm_(double max_norm, double norm_type = 2, bool error_if_nonfinite = false) {
    return sync_->ClipGradNorm(max_norm, norm_type, error_if_nonfinite);
  }

  // Of a recent step, see GradientSyncTimes.
  GradientSyncTimes sync_times() const { return sync_->times(); }

  // The module, whose forward() called directly synchronises nothing.
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
