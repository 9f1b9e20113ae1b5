#include "examples/tour/data.h"

#include <attune/data_loader.h>
#include <torch/data/datasets/base.h>
#include <torch/data/datasets/map.h>
#include <torch/data/datasets/stateful.h>
#include <torch/data/datasets/tensor.h>
#include <torch/data/example.h>
#include <torch/data/transforms/stack.h>
#include <torch/types.h>

#include <iostream>
#include <optional>
#include <string>
#include <vector>

namespace tour {
namespace {

using Sample = torch::data::Example<>;
using Samples = std::vector<Sample>;

// A stream, such as the lines of a log. An epoch ends with the last line.
class Lines : public torch::data::datasets::StatefulDataset<Lines, Samples> {
 public:
  explicit Lines(std::int64_t count) : count_(count) {}

  std::optional<Samples> get_batch(std::size_t wanted) override {
    Samples samples;
    for (; samples.size() < wanted && next_ < count_; ++next_) {
      samples.push_back({torch::full({1}, next_), torch::tensor(next_ % 2)});
    }
    if (samples.empty()) return std::nullopt;
    return samples;
  }
  void skip(std::size_t samples) { next_ += static_cast<std::int64_t>(samples); }
  void reset() override { next_ = 0; }
  std::optional<std::size_t> size() const override { return std::nullopt; }
  // The loader saves the position.
  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}

 private:
  std::int64_t count_;
  std::int64_t next_ = 0;
};

std::string Text(const at::Tensor& numbers) {
  std::string text;
  for (const at::Tensor& number : numbers.flatten().unbind()) {
    text += " " + std::to_string(number.item<std::int64_t>());
  }
  return text;
}

void Print(const attune::Context& context, const std::string& what) {
  // Writes once, because ranks share the output.
  std::cout << "rank " + std::to_string(context.rank()) + ": " + what + "\n" << std::flush;
}

}  // namespace

void ReadStream(attune::Context& context) {
  const attune::DataLoaderOptions options{.batch_size = 4, .shuffle = false};
  const auto lines = Lines(10).map(torch::data::transforms::Stack<>());
  auto loader = context.PrepareDataLoader(lines, options);
  Print(context, "lines" + Text(loader.Next().data));
  const attune::TensorMap place = loader.state_dict();

  auto resumed = context.PrepareDataLoader(lines, options);
  resumed.load_state_dict(place);
  const std::string begin = "after " + std::to_string(resumed.offset()) + " lines";
  Print(context, begin + Text(resumed.Next().data));
  resumed.set_epoch(1);
  for (auto& batch : resumed) {
    Print(context, "again, up to " + std::to_string(resumed.offset()) + Text(batch.data));
  }
}

void DrawByWeight(attune::Context& context) {
  // The last ten of the 100 samples have class 1.
  const at::Tensor classes = torch::cat({torch::zeros({90}), torch::ones({10})});
  std::vector<double> weights(90, 1.0);
  weights.resize(100, 9.0);
  auto loader = context.PrepareDataLoader(
      torch::data::datasets::TensorDataset(classes).map(
          torch::data::transforms::Stack<torch::data::TensorExample>()),
      {.batch_size = 20, .threads = 2, .prefetch_factor = 1, .weights = weights});
  double ones = 0;
  for (auto& batch : loader) ones += batch.data.sum().item<double>();
  Print(context, "drew class 1 in " +
                     std::to_string(context.ReduceSum({{"ones", ones}}).at("ones")) +
                     " of 100 samples");
}

void SampleByHand(attune::Context& context) {
  attune::DistributedSampler sampler = context.PrepareSampler(10, {.shuffle = true});
  const auto first = sampler.next(2);        // two samples for each rank
  const auto second = sampler.NextShare(3);  // three samples over all ranks
  Print(context, "has visited " + std::to_string(sampler.offset()) + " of " +
                     std::to_string(sampler.size()) + " with the others, and itself " +
                     std::to_string(first->size() + second->size()));
  attune::DistributedSampler other = context.PrepareSampler(10);
  other.load_state_dict(sampler.state_dict());
  other.MoveTo(/*epoch=*/1, /*offset=*/4);
  other.set_epoch(other.epoch() + 1);
  other.reset();  // LibTorch's loaders call this before each epoch
}

}  // namespace tour
