// Compares batch norm over the gang with batch norm over the whole batch.

#include <attune/attune.h>
#include <attune/sync_batch_norm.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "tests/unit/trainable/program/gang_modes.h"

namespace gang {
namespace {

namespace nn = torch::nn;

constexpr std::int64_t kFeatures = 5;

// How a batch is divided: rank r gets `first` + r × `more` samples. With `none_for_last`, the last
// rank gets none.
struct Shares {
  std::int64_t first = 3;
  std::int64_t more = 0;
  bool none_for_last = false;

  std::vector<std::int64_t> Sizes(int world_size) const {
    std::vector<std::int64_t> sizes;
    for (int rank = 0; rank < world_size; ++rank) sizes.push_back(first + rank * more);
    if (none_for_last && world_size > 1) sizes.back() = 0;
    return sizes;
  }
};

// The largest difference, relative to the largest expected value if that exceeds 1.
double Distance(const at::Tensor& found, const at::Tensor& wanted) {
  if (found.defined() != wanted.defined()) return INFINITY;
  if (wanted.numel() == 0) return 0;
  const double scale = std::max(1.0, wanted.abs().max().item<double>());
  return (found - wanted).abs().max().item<double>() / scale;
}

// The largest difference from batch norm of the whole batch on any rank: outputs, gradients and
// statistics over two steps, and then outputs in evaluation.
template <typename BatchNorm>
double Compare(attune::Context& context, const nn::BatchNormOptions& options, const Shares& shares,
               at::ScalarType type, std::vector<std::int64_t> rest,
               at::MemoryFormat format = at::MemoryFormat::Contiguous) {
  torch::manual_seed(3);
  BatchNorm whole(options);
  attune::SyncBatchNorm sync(options);
  if (options.affine()) {
    const at::NoGradGuard no_grad;
    whole->weight.normal_(1);
    whole->bias.normal_();
    sync->weight.copy_(whole->weight);
    sync->bias.copy_(whole->bias);
  }
  whole->to(type);
  sync->to(type);
  auto model = context.PrepareModel(sync);
  torch::manual_seed(4);  // the whole batch is the same on every rank

  const auto sizes = shares.Sizes(context.world_size());
  std::vector<std::int64_t> shape{std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}),
                                  kFeatures};
  shape.insert(shape.end(), rest.begin(), rest.end());
  const auto share = [&](const at::Tensor& batch) {
    return batch.split_with_sizes(sizes)[context.rank()];
  };
  double distance = 0;
  const auto compare = [&](const at::Tensor& a, const at::Tensor& b) {
    const double found = Distance(a, b);
    if (!(found <= distance)) distance = found;  // NaN too
  };
  for (int step = 0; step < 2; ++step) {
    const auto batch = (torch::randn(shape, type) * 2 + 3).contiguous(format);
    const auto weights = torch::randn(shape, type);
    const auto x = batch.clone().requires_grad_();
    const auto own = share(batch).clone().contiguous(format).requires_grad_();
    const auto y = whole(x);
    (y * weights).sum().backward();
    const auto own_y = model(own);
    (own_y * share(weights)).sum().backward();
    compare(own_y, share(y));
    compare(own.grad(), share(x.grad()));
    if (!options.affine()) continue;
    // The gang averages gradients over ranks, but the loss of the whole batch is a sum over ranks.
    compare(model->weight.grad() * context.world_size(), whole->weight.grad());
    compare(model->bias.grad() * context.world_size(), whole->bias.grad());
  }
  if (options.track_running_stats()) {
    compare(model->running_mean, whole->running_mean);
    compare(model->running_var, whole->running_var);
    compare(model->num_batches_tracked, whole->num_batches_tracked);
  }
  model.eval();
  whole->eval();
  const auto x = torch::randn(shape, type);
  compare(model(x), whole(x));
  return context.ReduceSum({{"distance", distance}}).at("distance");
}

attune::Metrics CompareAll(attune::Context& context) {
  const nn::BatchNormOptions plain(kFeatures);
  const auto no_momentum = nn::BatchNormOptions(kFeatures).momentum(std::nullopt);
  const auto not_affine = nn::BatchNormOptions(kFeatures).affine(false);
  const auto untracked = nn::BatchNormOptions(kFeatures).track_running_stats(false);
  const Shares even;
  const Shares uneven{.first = 1, .more = 4};
  using B1 = nn::BatchNorm1d;
  using B2 = nn::BatchNorm2d;
  using B3 = nn::BatchNorm3d;
  return {
      {"double_even", Compare<B2>(context, plain, even, torch::kDouble, {4, 3})},
      {"double_uneven", Compare<B2>(context, plain, uneven, torch::kDouble, {4, 3})},
      {"double_1d", Compare<B1>(context, plain, {.first = 2, .more = 1}, torch::kDouble, {})},
      {"double_3d", Compare<B3>(context, plain, uneven, torch::kDouble, {2, 2, 2})},
      {"double_momentum_none", Compare<B2>(context, no_momentum, even, torch::kDouble, {4, 3})},
      {"double_not_affine", Compare<B2>(context, not_affine, uneven, torch::kDouble, {4, 3})},
      {"double_untracked", Compare<B2>(context, untracked, uneven, torch::kDouble, {4, 3})},
      {"double_none_for_last",
       Compare<B2>(context, plain, {.none_for_last = true}, torch::kDouble, {4, 3})},
      {"float_uneven", Compare<B2>(context, plain, uneven, torch::kFloat, {4, 3})},
      {"float_channels_last",
       Compare<B2>(context, plain, uneven, torch::kFloat, {4, 3}, at::MemoryFormat::ChannelsLast)},
  };
}

template <typename Act>
std::string ErrorOf(const Act& act) {
  try {
    act();
  } catch (const attune::Error& error) {
    return error.what();
  }
  return "";
}

double Contains(const std::string& text, const std::string& part) {
  return text.find(part) == std::string::npos ? 0 : 1;
}

struct TypedImpl : nn::Module {
  TypedImpl()
      : norm(register_module("norm", nn::BatchNorm1d(kFeatures))),
        net(register_module("net", nn::Sequential(nn::BatchNorm1d(kFeatures)))) {}
  at::Tensor forward(const at::Tensor& x) { return net->forward(norm(x)); }
  nn::BatchNorm1d norm;
  nn::Sequential net;
};
TORCH_MODULE(Typed);

attune::Metrics Refusals(attune::Context& context) {
  auto model = context.PrepareModel(attune::SyncBatchNorm(kFeatures));
  const auto one_value = torch::ones({context.rank() == 0 ? 1 : 0, kFeatures});
  const auto x = torch::randn({4, kFeatures}).requires_grad_();
  Typed typed;
  const std::string members = ErrorOf([&] { attune::ConvertSyncBatchNorm(*typed); });
  return {{"one_value", Contains(ErrorOf([&] { model(one_value); }), "1 values for each feature")},
          {"shape", Contains(ErrorOf([&] {
                               model(torch::ones({4, 2}));
                             }),
                             "[4, 2]")},
          {"twice", Contains(ErrorOf([&] {
                               torch::autograd::grad({model(x).square().sum()}, {x}, {},
                                                     std::nullopt,
                                                     /*create_graph=*/true);
                             }),
                             "create_graph")},
          {"members", Contains(members, "in place of norm")},
          {"unchanged", typed->net[0]->as<nn::BatchNorm1d>() != nullptr}};
}

// A model that contains a Sequential.
struct InnerImpl : nn::Module {
  at::Tensor forward(const at::Tensor& x) { return net->forward(x); }
  nn::Sequential net =
      register_module("net", nn::Sequential(nn::Linear(8, kFeatures), nn::BatchNorm1d(kFeatures)));
};
TORCH_MODULE(Inner);

// A converted model trains like the plain model with the whole batch.
void TrainConverted(attune::Context& context) {
  torch::manual_seed(4);
  nn::Sequential net(nn::Linear(4, 8), nn::BatchNorm1d(8), nn::ReLU(), Inner(), nn::Linear(5, 1));
  net->to(torch::kDouble);
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  if (context.world_size() > 1) attune::ConvertSyncBatchNorm(*net);
  auto model = context.PrepareModel(net);
  // Each rank has a different batch size, so its loss is weighted. The mean over ranks then equals
  // that of the whole batch.
  torch::manual_seed(5);
  const auto x = torch::randn({12, 4}, torch::kDouble);
  const auto sizes = context.world_size() == 1   ? std::vector<std::int64_t>{12}
                     : context.world_size() == 2 ? std::vector<std::int64_t>{9, 3}
                                                 : std::vector<std::int64_t>{1, 4, 7};
  const auto own = x.split_with_sizes(sizes)[context.rank()];
  const double weight = context.world_size() / 12.0;
  for (int step = 0; step < 6; ++step) {
    sgd.zero_grad();
    const auto loss = (model(own).flatten() - own.sum(1)).square().sum() * weight;
    loss.backward();
    sgd.step();
    const auto mean = context.ReduceMean({{"loss", loss.item<double>()}});
    if (!context.Report(mean)) return;
  }
  model.eval();
  if (!context.Report({{"loss", model(x).sum().item<double>()}})) return;
}

}  // namespace

void Norms(attune::Context& context) {
  const std::string mode = context.config().Text("mode");
  if (mode == "converted") return TrainConverted(context);
  if (!context.Report(mode == "refusals" ? Refusals(context) : CompareAll(context))) return;
}

}  // namespace gang
