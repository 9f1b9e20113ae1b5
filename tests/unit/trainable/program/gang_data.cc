// Training with a prepared loader. Each rank prints its samples and its weights.

#include <attune/attune.h>
#include <torch/data/datasets/base.h>
#include <torch/data/datasets/map.h>
#include <torch/data/datasets/stateful.h>
#include <torch/data/transforms/stack.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include <algorithm>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/trainable/program/gang_modes.h"

namespace gang {
namespace {

constexpr std::int64_t kInputs = 4;

// Sample i consists of four numbers computed from i, and the target i.
class Numbers : public torch::data::datasets::Dataset<Numbers> {
 public:
  Numbers(std::int64_t size, std::int64_t damaged) : size_(size), damaged_(damaged) {}

  torch::data::Example<> get(std::size_t i) override {
    if (static_cast<std::int64_t>(i) == damaged_) {
      throw std::runtime_error("sample " + std::to_string(i) + " is damaged");
    }
    const auto x = torch::arange(kInputs, torch::kFloat).mul_(static_cast<double>(i)).sin_();
    return {x, torch::tensor(static_cast<std::int64_t>(i))};
  }
  std::optional<std::size_t> size() const override { return size_; }

 private:
  std::int64_t size_;
  std::int64_t damaged_;
};

// The same samples as a finite stream. Each epoch has a different order.
class NumberStream
    : public torch::data::datasets::StatefulDataset<NumberStream,
                                                    std::vector<torch::data::Example<>>> {
 public:
  NumberStream(std::int64_t size, std::int64_t damaged) : numbers_(size, damaged) {}

  std::optional<std::vector<torch::data::Example<>>> get_batch(std::size_t count) override {
    std::vector<torch::data::Example<>> samples;
    for (; samples.size() < count && next_ < *numbers_.size(); ++next_) {
      samples.push_back(numbers_.get((next_ + 13 * epoch_) % *numbers_.size()));
    }
    if (samples.empty()) return std::nullopt;
    return samples;
  }
  std::optional<std::size_t> size() const override { return std::nullopt; }
  void set_epoch(std::int64_t epoch) { epoch_ = epoch; }
  void reset() override { next_ = 0; }
  // The loader saves its position itself.
  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}

 private:
  Numbers numbers_;
  std::size_t epoch_ = 0;
  std::size_t next_ = 0;
};

// The same samples as an endless stream. An epoch has a fixed number of samples, and the start can
// be skipped.
class EndlessNumbers
    : public torch::data::datasets::StreamDataset<EndlessNumbers,
                                                  std::vector<torch::data::Example<>>> {
 public:
  EndlessNumbers(std::int64_t size, std::int64_t damaged) : numbers_(size, damaged) {}

  std::vector<torch::data::Example<>> get_batch(std::size_t count) override {
    std::vector<torch::data::Example<>> samples;
    while (samples.size() < count) samples.push_back(numbers_.get(next_++ % *numbers_.size()));
    return samples;
  }
  std::optional<std::size_t> size() const override { return numbers_.size(); }
  void skip(std::size_t count) { next_ += count; }

 private:
  Numbers numbers_;
  std::size_t next_ = 0;
};

template <typename Dataset>
class Training {
 public:
  explicit Training(attune::Context& context, const attune::DataLoaderOptions& options)
      : context_(context),
        model_(context.PrepareModel(torch::nn::Linear(kInputs, 1))),
        optimizer_(model_->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)),
        loader_(context.PrepareDataLoader(
            Dataset(context.config().Int("samples"), context.config().IntOr("damaged", -1))
                .map(torch::data::transforms::Stack<>()),
            options)) {}

  void Batches(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const Place before = Position();
      auto batch = loader_.Next();
      Train(before, batch);
    }
  }

  // Trains on the rest of the epoch, but at most `most` batches.
  void Epoch(std::int64_t most) {
    Place before = Position();
    for (auto& batch : loader_) {
      Train(before, batch);
      before = Position();
      if (--most == 0) break;
    }
  }

  void Save(attune::CheckpointWriter& checkpoint) {
    checkpoint.Write("model", *model_);
    checkpoint.Write("optimizer", optimizer_);
    checkpoint.Write("data", loader_.state_dict());
  }

  void Load(const attune::CheckpointReader& checkpoint) {
    checkpoint.Read("model", *model_);
    checkpoint.Read("optimizer", optimizer_);
    loader_.load_state_dict(checkpoint.ReadTensors("data"));
  }

  double WeightsHash() const {
    return Hash(torch::cat({model_->weight.reshape({-1}), model_->bias}));
  }

 private:
  struct Place {
    std::int64_t epoch;
    std::int64_t offset;
  };

  Place Position() const { return {loader_.epoch(), loader_.offset()}; }

  void Train(const Place& before, torch::data::Example<>& batch) {
    std::ostringstream line;  // written at once, because ranks share the log
    line << "visits " << before.epoch << " " << before.offset;
    for (std::int64_t i = 0; i < batch.target.numel(); ++i) {
      line << " " << batch.target[i].item<std::int64_t>();
    }
    std::cout << line.str() + "\n" << std::flush;
    optimizer_.zero_grad();
    torch::mse_loss(model_(batch.data).reshape({-1}), batch.target.to(torch::kFloat).div_(100))
        .backward();
    optimizer_.step();
  }

  attune::Context& context_;
  attune::DistributedModel<torch::nn::LinearImpl> model_;
  torch::optim::SGD optimizer_;
  attune::DataLoader<torch::data::datasets::MapDataset<Dataset, torch::data::transforms::Stack<>>>
      loader_;
};

// A step is `batches` batches or, without that parameter, an epoch of at most `most` batches.
template <typename Dataset>
void TrainOn(attune::Context& context, const attune::DataLoaderOptions& options) {
  Training<Dataset> training(context, options);
  if (const auto* checkpoint = context.checkpoint()) training.Load(*checkpoint);
  const std::int64_t batches = context.config().IntOr("batches", 0);
  const std::int64_t most = context.config().IntOr("most", -1);
  double spread = 0;
  do {
    if (batches > 0) {
      training.Batches(batches);
    } else {
      training.Epoch(most);
    }
    const double hash = training.WeightsHash();
    const auto sum = context.ReduceSum({{"hash", hash}, {"square", hash * hash}});
    spread = context.world_size() * sum.at("square") - sum.at("hash") * sum.at("hash");
  } while (context.Report({{"hash", training.WeightsHash()}, {"spread", spread}},
                          [&](attune::CheckpointWriter& writer) { training.Save(writer); }));
}

}  // namespace

double Hash(const at::Tensor& floats) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto bits = floats.detach().contiguous().view(torch::kInt);
  for (std::int64_t i = 0; i < bits.numel(); ++i) {
    hash = (hash ^ static_cast<std::uint32_t>(bits.data_ptr<int>()[i])) * 0x100000001b3u;
  }
  return static_cast<double>(hash >> 40);
}

void Loader(attune::Context& context) {
  const attune::Config& config = context.config();
  const std::string kind = config.TextOr("kind", "indices");
  const bool is_stream = kind == "stream" || kind == "endless";
  attune::DataLoaderOptions options{.batch_size = config.Int("batch"),
                                    .shuffle = config.BoolOr("shuffle", !is_stream),
                                    .drop_last = config.BoolOr("drop_last", false),
                                    .threads = static_cast<int>(config.IntOr("threads", 1))};
  if (kind == "weights") {  // only the first half of the samples
    options.weights.assign(config.Int("samples"), 0);
    std::fill_n(options.weights.begin(), options.weights.size() / 2, 1.0);
  }
  if (kind == "stream") return TrainOn<NumberStream>(context, options);
  if (kind == "endless") return TrainOn<EndlessNumbers>(context, options);
  TrainOn<Numbers>(context, options);
}

}  // namespace gang
