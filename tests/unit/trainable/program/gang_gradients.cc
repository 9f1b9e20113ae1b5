// Effects of a model's options and functions on its gradients.

#include <attune/attune.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "tests/unit/trainable/program/gang_modes.h"

namespace gang {
namespace {

namespace nn = torch::nn;

// Returns 0 exactly if all ranks have the same bits.
double Spread(attune::Context& context, const at::Tensor& floats) {
  const double hash = Hash(floats);
  const auto sum = context.ReduceSum({{"hash", hash}, {"square", hash * hash}});
  return context.world_size() * sum.at("square") - sum.at("hash") * sum.at("hash");
}

template <typename M>
at::Tensor Weights(const attune::DistributedModel<M>& model) {
  std::vector<at::Tensor> flat;
  for (const auto& parameter : model->parameters())
    flat.push_back(parameter.detach().reshape({-1}));
  return at::cat(flat);
}

nn::Linear Ones() {
  nn::Linear linear(nn::LinearOptions(4, 1).bias(false));
  nn::init::ones_(linear->weight);
  return linear;
}

// The same model with a second name for its weight.
struct TiedImpl : nn::Module {
  at::Tensor forward(const at::Tensor& x) { return at::linear(x, weight); }
  at::Tensor weight = register_parameter("weight", at::ones({1, 4}));
  at::Tensor tied = register_parameter("tied", weight);
};
TORCH_MODULE(Tied);

// A loss whose mean gradient over ranks is known: the gradient of rank r is `unit` × (r + 1).
template <typename Model>
at::Tensor Loss(Model& model, attune::Context& context, double unit) {
  return model(at::full({1, 4}, unit * (context.rank() + 1))).sum();
}

template <typename Model>
at::Tensor Backward(Model& model, attune::Context& context, double unit) {
  Loss(model, context, unit).backward();
  return model->weight.grad();
}

template <typename Module>
attune::Metrics Clip(attune::Context& context, const Module& module, const std::string& mode) {
  auto model = context.PrepareModel(module);
  if (mode == "clip_local") {
    const attune::NoSync local = model.no_sync();
    Backward(model, context, 1);
    model.clip_grad_norm_(1);
  }
  if (mode == "clip_late") {
    const at::Tensor loss = Loss(model, context, 1);
    const attune::NoSync local = model.no_sync();
    loss.backward();
  } else {
    Backward(model, context, 1);
  }
  const double norm = model.clip_grad_norm_(0.5);
  const at::Tensor& gradient = model->weight.grad();
  return {{"norm", norm},
          {"after", gradient.norm().item<double>()},
          {"spread", Spread(context, gradient)}};
}

attune::Metrics Compress(attune::Context& context, attune::GradientCompression compression) {
  auto model = context.PrepareModel(Ones(), {.gradient_compression = compression});
  const double mean = (context.world_size() + 1) / 2.0;
  const at::Tensor odd = Backward(model, context, 0.3).clone();
  model->zero_grad();
  const at::Tensor large = Backward(model, context, 32768);
  return {{"error", (odd / 0.3 / mean - 1).abs().max().item<double>()},
          {"large", large.max().item<double>()},
          {"spread", Spread(context, odd)}};
}

// Three layers; the last one is used only with `with_spare`.
struct BranchesImpl : nn::Module {
  at::Tensor forward(const at::Tensor& x, bool with_spare) {
    const auto y = always(torch::relu(first(x)));
    return with_spare ? y + spare(x) : y;
  }
  nn::Linear first = register_module("first", nn::Linear(4, 4));
  nn::Linear always = register_module("always", nn::Linear(4, 1));
  nn::Linear spare = register_module("spare", nn::Linear(4, 1));
};
TORCH_MODULE(Branches);

// Compares a static graph that never uses a layer with find_unused_parameters. Then breaks the
// promise of the static graph.
attune::Metrics StaticGraph(attune::Context& context) {
  torch::manual_seed(1);
  auto dynamic_model = context.PrepareModel(Branches(), {.find_unused_parameters = true});
  torch::manual_seed(1);
  auto model =
      context.PrepareModel(Branches(), {.find_unused_parameters = true, .static_graph = true});
  torch::optim::SGD dynamic_optimizer(dynamic_model->parameters(), 0.1);
  torch::optim::SGD static_optimizer(model->parameters(), 0.1);
  double spread = 0;
  for (int step = 0; step < 4; ++step) {
    const auto x = torch::randn({4, 4});  // different on each rank
    dynamic_optimizer.zero_grad();
    static_optimizer.zero_grad();
    dynamic_model(x, false).sum().backward();
    if (step % 2 == 0) {  // also before the first synchronised backward
      const attune::NoSync local = model.no_sync();
      model(x, false).sum().backward();
      static_optimizer.zero_grad();
    }
    model(x, false).sum().backward();
    dynamic_optimizer.step();
    static_optimizer.step();
    spread += Spread(context, Weights<Branches>(model));
  }
  attune::Metrics metrics{
      {"spread", spread},
      {"same", at::equal(Weights<Branches>(dynamic_model), Weights<Branches>(model))},
      {"spare", model->spare->weight.grad().defined()}};
  try {
    model(torch::ones({4, 4}), true).sum().backward();
  } catch (const std::exception& error) {
    metrics["changed"] = std::string(error.what()).find("graph has changed") != std::string::npos;
  }
  return metrics;
}

// Whether the SDK refuses a backward that a static graph would count as part of itself.
attune::Metrics NoSyncTooLate(attune::Context& context) {
  auto model = context.PrepareModel(Ones(), {.static_graph = true});
  const at::Tensor loss = model(torch::ones({1, 4})).sum();
  const attune::NoSync local = model.no_sync();
  try {
    loss.backward();
  } catch (const attune::Error& error) {
    return {{"refused", std::string(error.what()).find("no_sync()") != std::string::npos}};
  }
  return {{"refused", 0}};
}

// An embedding with sparse gradients, and the same embedding with dense gradients.
attune::Metrics Sparse(attune::Context& context, attune::GradientCompression compression) {
  const attune::DistributedModelOptions options{.gradient_compression = compression};
  const auto table = [&](bool sparse) {
    torch::manual_seed(1);
    nn::Sequential net(nn::Embedding(nn::EmbeddingOptions(10, 4).sparse(sparse)), nn::Linear(4, 1));
    return context.PrepareModel(net, options);
  };
  auto sparse = table(true);
  auto dense = table(false);
  torch::optim::SGD of_sparse(sparse->parameters(), 0.1);
  torch::optim::SGD of_dense(dense->parameters(), 0.1);
  const auto rows = [&](int part) { return torch::tensor({context.rank() + part, 5, 5}); };
  attune::GradScaler scaler;
  double is_sparse = 0;
  double norms_differ = 0;
  for (int step = 0; step < 3; ++step) {
    for (auto* model : {&sparse, &dense}) {
      (*model)->zero_grad();
      {
        const attune::NoSync local = model->no_sync();
        scaler.scale((*model)(rows(0)).square().mean()).backward();
      }
      scaler.scale((*model)(rows(3)).square().mean()).backward();
    }
    is_sparse += sparse->parameters()[0].grad().is_sparse() ? 1 : 0;
    scaler.unscale_(of_sparse);
    scaler.unscale_(of_dense);
    norms_differ += std::abs(sparse.clip_grad_norm_(0.1) - dense.clip_grad_norm_(0.1));
    scaler.step(of_sparse);
    scaler.step(of_dense);
    scaler.update();
  }
  const auto weights = Weights<nn::Sequential>(sparse);
  return {{"sparse", is_sparse},
          {"norms_differ", norms_differ},
          {"error", (weights - Weights<nn::Sequential>(dense)).abs().max().item<double>()},
          {"spread", Spread(context, weights)}};
}

// Guards that are kept, moved and replaced.
attune::Metrics KeptNoSync(attune::Context& context) {
  auto model = context.PrepareModel(nn::Linear(2, 1));
  const auto is_local = [&] {
    model->zero_grad();
    model(torch::full({1, 2}, context.rank() + 1.0)).sum().backward();
    return Spread(context, model->weight.grad()) != 0 ? 1.0 : 0.0;
  };
  attune::Metrics metrics;
  std::optional<attune::NoSync> guard;
  metrics["before"] = is_local();
  guard.emplace(model.no_sync());
  metrics["kept"] = is_local();
  guard = model.no_sync();
  metrics["replaced"] = is_local();
  attune::NoSync moved = *std::move(guard);
  guard.reset();
  metrics["moved"] = is_local();
  { const attune::NoSync ended = std::move(moved); }
  metrics["after"] = is_local();
  return metrics;
}

// LBFGS with a share of the samples on each rank, with or without a line search.
class Lbfgs {
 public:
  explicit Lbfgs(attune::Context& context)
      : context_(context),
        model_(
            context.PrepareModel(nn::Sequential(nn::Linear(4, 8), nn::Tanh(), nn::Linear(8, 1)))),
        optimizer_(model_->parameters(), Options(context)) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(3);
    const auto x = torch::randn({64, 4}, generator);
    x_ = x.chunk(context.world_size())[context.rank()];
    y_ = x_.sum(1, /*keepdim=*/true).sin();
  }

  attune::Metrics Step() {
    int evaluations = 0;
    const auto first_loss = optimizer_.step([&] {
      ++evaluations;
      optimizer_.zero_grad();
      at::Tensor loss = torch::mse_loss(model_(x_), y_);
      loss.backward();
      // LBFGS uses the loss to choose its step, so it must be equal on all ranks.
      loss = loss.detach();
      attune::AllReduce(context_, loss, attune::ReduceOp::kMean);
      return loss;
    });
    return {{"loss", first_loss.item<double>()},
            {"evaluations", evaluations},
            {"hash", Hash(Weights<nn::Sequential>(model_))},
            {"spread", Spread(context_, Weights<nn::Sequential>(model_))}};
  }

  void Save(attune::CheckpointWriter& checkpoint) {
    checkpoint.Write("model", *model_);
    checkpoint.Write("optimizer", optimizer_);
  }

  void Load(const attune::CheckpointReader& checkpoint) {
    checkpoint.Read("model", *model_);
    checkpoint.Read("optimizer", optimizer_);
  }

 private:
  static torch::optim::LBFGSOptions Options(const attune::Context& context) {
    torch::optim::LBFGSOptions options(0.5);
    options.max_iter(5).history_size(4);
    if (context.config().BoolOr("line_search", false)) options.line_search_fn("strong_wolfe");
    return options;
  }

  attune::Context& context_;
  attune::DistributedModel<nn::Sequential> model_;
  torch::optim::LBFGS optimizer_;
  at::Tensor x_;
  at::Tensor y_;
};

// A generator and a discriminator that are trained against each other.
class Gan {
 public:
  Gan(attune::Context& context, const attune::DistributedModelOptions& options)
      : context_(context) {
    torch::manual_seed(1);
    real_ = Share(torch::randn({64, 4}) + 2);
    noise_ = Share(torch::randn({64, 4}));
    generator_ = context.PrepareModel(nn::Linear(4, 4), options);
    discriminator_ = context.PrepareModel(
        nn::Sequential(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 1)), options);
    of_generator_ = std::make_unique<torch::optim::SGD>(generator_->parameters(), 0.1);
    of_discriminator_ = std::make_unique<torch::optim::SGD>(discriminator_->parameters(), 0.1);
  }

  // A step with a batch in two parts and clipped gradients.
  attune::Metrics StepInParts() {
    const auto real = real_.chunk(2);
    const auto noise = noise_.chunk(2);
    double loss_of_both = 0;
    double deceit_of_both = 0;
    of_discriminator_->zero_grad();
    for (const int part : {0, 1}) {
      const auto backward = [&] {
        const auto fake = generator_(noise[part]).detach();
        const auto loss = (torch::softplus(-discriminator_(real[part])).mean() +
                           torch::softplus(discriminator_(fake)).mean()) /
                          2;
        loss.backward();
        loss_of_both += loss.item<double>();
      };
      if (part == 1) {
        backward();
      } else {
        const attune::NoSync local = discriminator_.no_sync();
        backward();
      }
    }
    const double norm = discriminator_.clip_grad_norm_(0.3);
    of_discriminator_->step();
    of_generator_->zero_grad();
    const attune::NoSync unwanted = discriminator_.no_sync();
    for (const int part : {0, 1}) {
      const auto backward = [&] {
        const auto deceit = torch::softplus(-discriminator_(generator_(noise[part]))).mean() / 2;
        deceit.backward();
        deceit_of_both += deceit.item<double>();
      };
      if (part == 1) {
        backward();
      } else {
        const attune::NoSync local = generator_.no_sync();
        backward();
      }
    }
    generator_.clip_grad_norm_(0.1);
    of_generator_->step();
    attune::Metrics metrics =
        context_.ReduceMean({{"loss", loss_of_both}, {"deceit", deceit_of_both}, {"norm", norm}});
    metrics["spread"] = SpreadOfWeights();
    return metrics;
  }

  attune::Metrics Step() {
    of_discriminator_->zero_grad();
    const auto fake = generator_(noise_);
    const auto loss = torch::softplus(-discriminator_(real_)).mean() +
                      torch::softplus(discriminator_(fake.detach())).mean();
    loss.backward();
    of_discriminator_->step();
    of_generator_->zero_grad();
    const auto deceit = torch::softplus(-discriminator_(fake)).mean();
    deceit.backward();
    of_generator_->step();
    attune::Metrics metrics =
        context_.ReduceMean({{"loss", loss.item<double>()}, {"deceit", deceit.item<double>()}});
    metrics["spread"] = SpreadOfWeights();
    return metrics;
  }

 private:
  double SpreadOfWeights() {
    return Spread(context_, Weights<nn::Linear>(generator_)) +
           Spread(context_, Weights<nn::Sequential>(discriminator_));
  }

  at::Tensor Share(const at::Tensor& samples) const {
    return samples.chunk(context_.world_size())[context_.rank()];
  }

  attune::Context& context_;
  attune::DistributedModel<nn::Linear> generator_;
  attune::DistributedModel<nn::Sequential> discriminator_;
  std::unique_ptr<torch::optim::SGD> of_generator_;
  std::unique_ptr<torch::optim::SGD> of_discriminator_;
  at::Tensor real_;
  at::Tensor noise_;
};

// bfloat16 with a scaler. In the third step, the loss of rank 1 overflows.
class Amp {
 public:
  explicit Amp(attune::Context& context)
      : context_(context),
        model_(
            context.PrepareModel(nn::Sequential(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 1)))),
        optimizer_(model_->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9)),
        scaler_({.growth_interval = 2}) {}

  attune::Metrics Step() {
    const auto before = Weights<nn::Sequential>(model_);
    const auto x = torch::randn({16, 4});
    optimizer_.zero_grad();
    at::Tensor output;
    at::Tensor loss;
    {
      const attune::Autocast autocast(context_.device());
      output = model_(x);
      loss = torch::mse_loss(output.reshape({-1}).to(torch::kFloat), x.sum(1));
    }
    if (context_.step() == 2 && context_.rank() == 1) loss = loss * INFINITY;
    scaler_.scale(loss).backward();
    const bool stepped = scaler_.step(optimizer_);
    scaler_.update();
    const auto after = Weights<nn::Sequential>(model_);
    return {{"bf16", output.scalar_type() == at::kBFloat16},
            {"float", model_->parameters()[0].grad().scalar_type() == at::kFloat},
            {"stepped", stepped},
            {"moved", !at::equal(before, after)},
            {"scale", scaler_.get_scale()},
            {"hash", Hash(after)},
            {"spread", Spread(context_, after)}};
  }

  void Save(attune::CheckpointWriter& checkpoint) {
    checkpoint.Write("model", *model_);
    checkpoint.Write("optimizer", optimizer_);
    checkpoint.Write("scaler", scaler_.state_dict());
  }

  void Load(const attune::CheckpointReader& checkpoint) {
    checkpoint.Read("model", *model_);
    checkpoint.Read("optimizer", optimizer_);
    scaler_.load_state_dict(checkpoint.ReadTensors("scaler"));
  }

 private:
  attune::Context& context_;
  attune::DistributedModel<nn::Sequential> model_;
  torch::optim::SGD optimizer_;
  attune::GradScaler scaler_;
};

template <typename Training>
void TrainWithCheckpoints(attune::Context& context) {
  Training training(context);
  if (const auto* checkpoint = context.checkpoint()) training.Load(*checkpoint);
  const auto save = [&](attune::CheckpointWriter& writer) { training.Save(writer); };
  while (context.Report(training.Step(), save)) {
  }
}

}  // namespace

void Gradients(attune::Context& context) {
  const std::string mode = context.config().Text("mode");
  if (mode == "amp") return TrainWithCheckpoints<Amp>(context);
  if (mode == "lbfgs") return TrainWithCheckpoints<Lbfgs>(context);
  if (mode.starts_with("gan")) {
    Gan gan(context, {.static_graph = mode == "gan_static"});
    for (int step = 0; step < 5; ++step) {
      if (!context.Report(mode == "gan_parts" ? gan.StepInParts() : gan.Step())) return;
    }
    return;
  }
  const attune::Metrics metrics =
      mode == "fp16"          ? Compress(context, attune::GradientCompression::kFp16)
      : mode == "bf16"        ? Compress(context, attune::GradientCompression::kBf16)
      : mode == "static"      ? StaticGraph(context)
      : mode == "sparse"      ? Sparse(context, attune::GradientCompression::kNone)
      : mode == "sparse_bf16" ? Sparse(context, attune::GradientCompression::kBf16)
      : mode == "kept"        ? KeptNoSync(context)
      : mode == "late"        ? NoSyncTooLate(context)
      : mode == "clip_tied"   ? Clip(context, Tied(), mode)
                              : Clip(context, Ones(), mode);
  if (!context.Report(metrics)) return;
}

}  // namespace gang
