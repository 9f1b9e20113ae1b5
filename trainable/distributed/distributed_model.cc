#include "attune/distributed_model.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "attune/error.h"
#include "attune/sync_batch_norm.h"
#include "trainable/distributed/compression.h"
#include "trainable/distributed/gradients.h"

namespace attune::inline sdk::trainable {
namespace {

// The Reducer is not a stable interface. This is its constructor since LibTorch 2.11.
static_assert(std::is_constructible_v<
              c10d::Reducer, std::vector<at::Tensor>, std::vector<std::vector<std::size_t>>,
              c10::intrusive_ptr<c10d::ProcessGroup>, std::vector<bool>, std::int64_t, bool, bool,
              std::unordered_map<std::size_t, std::string>, std::int64_t, bool, bool,
              std::vector<std::int64_t>>);

// The same limit as in DistributedDataParallel: one message is enough for most models.
constexpr std::size_t kBroadcastBytes = 250 << 20;

// The tensors of a module by name, in the order of the module's definition, which is the same on
// every rank. Shared tensors appear once.
template <typename Items>
std::vector<std::pair<std::string, at::Tensor>> UniqueTensors(const Items& items) {
  std::set<const void*> visited;
  std::vector<std::pair<std::string, at::Tensor>> unique;
  for (const auto& item : items) {
    if (item.value().defined() && visited.insert(item.value().unsafeGetTensorImpl()).second) {
      unique.emplace_back(item.key(), item.value());
    }
  }
  return unique;
}

// The weights of the module that have sparse gradients.
std::set<const void*> SparseGradientWeights(torch::nn::Module& module) {
  std::set<const void*> sparse;
  module.apply([&](torch::nn::Module& part) {
    if (const auto* embedding = part.as<torch::nn::EmbeddingImpl>()) {
      if (embedding->options.sparse()) sparse.insert(embedding->weight.unsafeGetTensorImpl());
    } else if (const auto* bag = part.as<torch::nn::EmbeddingBagImpl>()) {
      if (bag->options.sparse()) sparse.insert(bag->weight.unsafeGetTensorImpl());
    }
  });
  return sparse;
}

double Seconds(const at::DDPLoggingData& data, const char* key) {
  const auto found = data.ints_map.find(key);
  return found == data.ints_map.end() ? 0 : static_cast<double>(found->second) * 1e-9;
}

}  // namespace

struct GradientSync::State {
  Context& context;
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  std::vector<at::Tensor> buffers;
  bool broadcast_buffers;
  bool find_unused_parameters;
  bool static_graph;
  bool static_graph_begun =
      false;  // set_static_graph() was called; the next backward records the graph
  bool static_graph_known = false;  // the first synchronised backward is done
  int pauses = 0;                   // Pause() calls without a Resume() yet
  bool preparing = false;     // true between BeforeForward and AfterForward of a synchronised step
  bool synchronised = false;  // a synchronised forward has happened
  bool expects_backward = false;  // the Reducer expects a backward
  bool in_backward = false;       // a backward has reached the first parameter
  bool local = false;             // the gradients of the last backward were not synchronised
  std::vector<at::Tensor> parameters;
  std::vector<std::pair<at::Tensor, unsigned>>
      hooks;  // the hooks that call OnGradient(), by parameter
  std::shared_ptr<c10d::Reducer> reducer;
  std::shared_ptr<c10d::Logger> logger;  // declared after the reducer, which it keeps alive

  void Broadcast(const std::vector<at::Tensor>& tensors) const {
    if (tensors.empty() || context.world_size() == 1) return;
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> detached;
    for (const at::Tensor& tensor : tensors) detached.push_back(tensor.detach());
    c10d::broadcast_coalesced(group, detached, kBroadcastBytes, /*rank=*/0);
  }

  ~State() {
    for (auto& [parameter, hook] : hooks) parameter.remove_hook(hook);
  }

  void ExpectBackward(const std::vector<at::Tensor>& outputs) {
    reducer->prepare_for_backward(outputs);
    expects_backward = true;
  }

  // Called when a backward is about to accumulate the gradient of a parameter.
  //
  // The Reducer expects one backward after each forward. If two forwards ran before their two
  // backwards, it would miss the second backward, and the ranks' gradients would differ.
  void OnGradient() {
    if (std::exchange(in_backward, true)) return;
    auto& engine = torch::autograd::Engine::get_default_engine();
    engine.queue_callback([this] { expects_backward = in_backward = false; });
    // After a forward outside no_sync() the Reducer reduces, even if its backward runs under
    // no_sync().
    local = pauses > 0 && !expects_backward;
    if (pauses > 0 && expects_backward && static_graph && !static_graph_known) {
      throw Error(
          "DistributedModel: with static_graph the first forward outside of no_sync() must be "
          "followed by its backward, before one under no_sync()");
    }
    if (local) return;
    if (!expects_backward && (find_unused_parameters || static_graph)) {
      throw Error(
          "DistributedModel: a second backward after one forward, or two forwards before their "
          "backwards; with find_unused_parameters or static_graph each forward must be followed "
          "by its backward, so add the losses up and call backward() once");
    }
    if (!expects_backward) ExpectBackward({});
    if (static_graph && !std::exchange(static_graph_known, true)) {
      // During this backward the Reducer only counts gradients; it reduces them afterwards.
      engine.queue_callback([this] { reducer->delay_all_reduce(); });
    }
  }
};

GradientSync::GradientSync(torch::nn::Module& module, Context& context,
                           const DistributedModelOptions& options)
    : state_(new State{
          .context = context,
          .broadcast_buffers = options.broadcast_buffers,
          // A static graph is recorded once, by its first backward.
          .find_unused_parameters = options.find_unused_parameters && !options.static_graph,
          .static_graph = options.static_graph}) {
  if (options.bucket_bytes <= 0 || options.first_bucket_bytes <= 0) {
    throw Error("PrepareModel: bucket_bytes and first_bucket_bytes must be positive");
  }
  module.to(context.device());
  for (auto& [name, parameter] : UniqueTensors(module.named_parameters())) {
    state_->parameters.push_back(parameter);
  }
  for (auto& [name, buffer] : UniqueTensors(module.named_buffers()))
    state_->buffers.push_back(buffer);
  if (context.world_size() == 1) return;
  state_->group = c10::intrusive_ptr<c10d::ProcessGroup>::reclaim_copy(&context.process_group());
  bool has_sync_batch_norm = false;
  module.apply([&](torch::nn::Module& part) {
    auto* const norm = part.as<SyncBatchNormImpl>();
    if (norm == nullptr) return;
    norm->group_ = state_->group.get();
    has_sync_batch_norm = true;
  });

  std::vector<at::Tensor> weights;
  std::vector<at::Tensor> trained;
  std::vector<bool> is_sparse;
  std::unordered_map<std::size_t, std::string> names;
  const std::set<const void*> sparse = SparseGradientWeights(module);
  auto parameters = UniqueTensors(module.named_parameters());
  // Backward reaches the last layers first, so they belong in the first bucket.
  std::reverse(parameters.begin(), parameters.end());
  for (auto& [name, parameter] : parameters) {
    weights.push_back(parameter);
    if (!parameter.requires_grad()) continue;
    names[trained.size()] = name;
    trained.push_back(parameter);
    is_sparse.push_back(sparse.contains(parameter.unsafeGetTensorImpl()));
  }
  // The function requires at least one weight.
  if (!weights.empty()) {
    c10d::verify_params_across_processes(state_->group, weights, std::nullopt);
  }
  state_->Broadcast(weights);
  state_->Broadcast(state_->buffers);
  if (trained.empty()) return;

  auto [buckets, limits] =
      c10d::compute_bucket_assignment_by_size(trained,
                                              {static_cast<std::size_t>(options.first_bucket_bytes),
                                               static_cast<std::size_t>(options.bucket_bytes)},
                                              is_sparse);
  state_->reducer = std::make_shared<c10d::Reducer>(
      trained, std::move(buckets), state_->group, is_sparse, options.bucket_bytes,
      state_->find_unused_parameters,
      // zero_grad(false) of an optimizer detaches gradients in place, which is not possible for a
      // view.
      /*gradient_as_bucket_view=*/false, std::move(names), options.first_bucket_bytes,
      /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
      /*bucket_bytes_cap_list=*/std::vector<std::int64_t>{});
  if (auto hook = MakeCompressionHook(options.gradient_compression, state_->group)) {
    state_->reducer->register_comm_hook(std::move(hook));
  }
  state_->logger = std::make_shared<c10d::Logger>(state_->reducer);
  state_->reducer->set_logger(state_->logger);
  // After its first backward the Reducer would reorder the parameters by the arrival of their
  // gradients. The place in a bucket determines the order of summation across three or more ranks.
  // A resumed trial has a different first backward, so its results would differ by rounding. The
  // Reducer reorders only once: do that now, and keep the current order.
  state_->reducer->push_rebuilt_params_for_all_indices();
  state_->reducer->rebuild_buckets();
  for (const at::Tensor& parameter : trained) {
    const unsigned hook =
        parameter.register_hook([state = state_.get()](const at::Tensor&) { state->OnGradient(); });
    state_->hooks.emplace_back(parameter, hook);
  }
  const auto device_ids =
      context.device().is_cuda() ? std::vector<int>{context.device().index()} : std::vector<int>{};
  state_->logger->set_construction_data_and_log(
      module.name(), device_ids, device_ids.empty() ? -1 : device_ids[0], options.broadcast_buffers,
      has_sync_batch_norm, options.static_graph);
}

GradientSync::~GradientSync() = default;

void GradientSync::Pause() { ++state_->pauses; }

void GradientSync::Resume() { --state_->pauses; }

void GradientSync::BeforeForward() {
  state_->context.Heartbeat();
  state_->preparing = state_->pauses == 0 && at::GradMode::is_enabled();
  if (!state_->preparing) return;
  if (state_->synchronised) state_->context.NoteFirstOptimizerStep();
  state_->synchronised = true;
  if (state_->reducer == nullptr) return;

  state_->logger->set_runtime_stats_and_log();
  // Not earlier: gradients that stay on the rank would count as part of the graph.
  if (state_->static_graph && !std::exchange(state_->static_graph_begun, true)) {
    state_->reducer->set_static_graph();
  }
  // The Reducer records a static graph from its first forward on, not from the first backward. If
  // several forwards precede that backward, one of them counts.
  if (state_->static_graph_known || !state_->static_graph || !state_->expects_backward) {
    state_->reducer->prepare_for_forward();
  }
  state_->reducer->rebuild_buckets();  // checks only that the last backward reached all parameters
  if (state_->broadcast_buffers) SyncBuffers();
}

void GradientSync::AfterForward(const std::vector<at::Tensor>& outputs) {
  if (state_->preparing && state_->reducer != nullptr) state_->ExpectBackward(outputs);
  state_->preparing = false;
}

void GradientSync::SyncBuffers() { state_->Broadcast(state_->buffers); }

double GradientSync::ClipGradNorm(double max_norm, double norm_type, bool error_if_nonfinite) {
  if (state_->local) {
    throw Error(
        "clip_grad_norm_: the last backward was not synchronised, so each rank would clip by a "
        "different norm; clip after the last part of the batch, outside of no_sync()");
  }
  std::vector<at::Tensor> clipped;
  for (const at::Tensor& parameter : state_->parameters) {
    const at::Tensor values = trainable::GradientValues(parameter);
    if (!values.defined() || !parameter.grad().is_sparse()) {
      clipped.push_back(parameter);
      continue;
    }
    // LibTorch would scale only a copy of a sparse gradient.
    at::Tensor values_with_gradient = at::empty_like(values);
    values_with_gradient.mutable_grad() = values;
    clipped.push_back(std::move(values_with_gradient));
  }
  return torch::nn::utils::clip_grad_norm_(clipped, max_norm, norm_type, error_if_nonfinite);
}

bool GradientSync::find_unused_parameters() const { return state_->find_unused_parameters; }

GradientSyncTimes GradientSync::times() const {
  if (state_->logger == nullptr) return {};
  const at::DDPLoggingData data = state_->logger->get_ddp_logging_data();
  return {.forward = Seconds(data, "forward_compute_time"),
          .backward = Seconds(data, "backward_compute_time"),
          .communication = Seconds(data, "backward_comm_time"),
          .overlap = Seconds(data, "backward_compute_comm_overlap_time")};
}

}  // namespace attune::inline sdk::trainable
