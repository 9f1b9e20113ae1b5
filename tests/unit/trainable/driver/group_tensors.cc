// Modes of the driver program that use tensors: values that are sent, weights, and a trainer next
// to a group.

#include <attune/torch_trainer.h>
#include <attune/worker_group.h>
#include <torch/data/datasets/tensor.h>
#include <torch/data/example.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/loss.h>
#include <torch/optim/sgd.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

#include "tests/unit/trainable/driver/group_modes.h"

namespace group {
namespace {

struct Nothing {};

template <typename T>
void PrintValue(const std::string& what, const T& value) {
  std::cout << what << ": " << value << std::endl;
}

using attune::trainable::Travels;
static_assert(Travels<std::map<std::string, std::vector<std::optional<at::Tensor>>>>);
static_assert(Travels<attune::TensorMap> && Travels<attune::Metrics> && Travels<attune::Config>);
static_assert(!Travels<Nothing> && !Travels<int*> && !Travels<std::vector<Nothing>>);
static_assert(!Travels<std::map<int, Nothing>> && !Travels<std::tuple<int, Nothing>>);

// Prints whether a value is equal after a round trip to the worker.
template <typename T>
void RoundTrip(attune::WorkerGroup<Nothing>& group, const std::string& what, const T& value) {
  PrintValue(what, group.CallOne(
                            0, [](Nothing&, T sent) { return sent; }, value)
                           .get() == value);
}

bool AreEqual(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.equal(b);
}
bool AreEqual(const attune::TensorMap& a, const attune::TensorMap& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, tensor] : a) {
    if (!b.contains(name) || !AreEqual(tensor, b.at(name))) return false;
  }
  return true;
}

enum class Colour : std::uint8_t { kRed, kGreen };

// All parameters of worker i are i + 1, and its statistics count i + 1 batches.
struct Net {
  explicit Net(const attune::Worker& worker)
      : net(torch::nn::Linear(2, 1), torch::nn::BatchNorm1d(1)) {
    const at::NoGradGuard no_grad;
    for (auto& parameter : net->parameters()) parameter.fill_(worker.index + 1);
    for (auto& buffer : net->buffers()) buffer.fill_(worker.index + 1);
  }
  torch::nn::Sequential module() { return net; }
  torch::nn::Sequential net;
};

struct DifferentlyShaped : torch::nn::Module {
  explicit DifferentlyShaped(const attune::Worker& worker)
      : line(register_module("line", torch::nn::Linear(worker.index + 1, 1))) {}
  torch::nn::Linear line;
};

std::string Values(const attune::TensorMap& weights) {
  std::string text;
  for (const auto& [name, tensor] : weights) {
    text += (text.empty() ? "" : " ") + name + "=" +
            std::to_string(tensor.to(at::kDouble).mean().item<double>()).substr(0, 3);
  }
  return text;
}

class Points : public torch::data::datasets::BatchDataset<Points, torch::data::Example<>> {
 public:
  torch::data::Example<> get_batch(c10::ArrayRef<std::size_t> places) override {
    const auto count = static_cast<std::int64_t>(places.size());
    return {torch::ones({count, 1}), 3 * torch::ones({count, 1})};
  }
  std::optional<std::size_t> size() const override { return 64; }
};

}  // namespace

void RoundTrips() {
  attune::WorkerGroup<Nothing> group(1);
  RoundTrip(group, "integers",
            std::tuple<char, std::int8_t, std::uint16_t, int, std::uint64_t>(
                'a', -1, 65535, -7, std::numeric_limits<std::uint64_t>::max()));
  RoundTrip(group, "reals", std::tuple(1.0f / 3, 1.0 / 3, std::numeric_limits<double>::infinity()));
  RoundTrip(group, "enumerations", Colour::kGreen);
  RoundTrip(group, "texts", std::string("a\0b", 3));
  RoundTrip(group, "long texts", std::string(3 << 20, 'x'));
  RoundTrip(group, "vectors", std::vector<float>{1.5f, -2.5f});
  RoundTrip(group, "vectors of booleans", std::vector<bool>{true, false, true});
  RoundTrip(group, "nested", std::vector<std::vector<std::string>>{{}, {"a", ""}});
  RoundTrip(group, "maps", std::map<std::string, std::vector<int>>{{"a", {1, 2}}, {"b", {}}});
  RoundTrip(group, "unordered maps", std::unordered_map<int, double>{{1, 0.5}, {2, 0.25}});
  RoundTrip(group, "optionals", std::vector<std::optional<int>>{std::nullopt, 3});
  RoundTrip(group, "pairs", std::pair(std::string("a"), 2L));
  RoundTrip(group, "variants", std::vector<std::variant<int, std::string>>{2, "two"});
  RoundTrip(group, "metrics", attune::Metrics{{"loss", 0.1}, {"accuracy", 0.9}});
  RoundTrip(group, "configurations",
            attune::Config({{"a", true}, {"b", std::int64_t{1}}, {"c", 0.1}, {"d", "text"}}));

  const auto echo = [](Nothing&, at::Tensor tensor) { return tensor; };
  const auto survives = [&](const at::Tensor& tensor) {
    return AreEqual(group.CallOne(0, echo, tensor).get(), tensor);
  };
  PrintValue("tensors", survives(torch::rand({3, 4})) && survives(torch::arange(5)) &&
                            survives(torch::tensor(true)) && survives(torch::rand({0, 2})) &&
                            survives(torch::rand({4, 4}).t()) && survives({}) &&
                            survives(torch::ones({2}, at::kBFloat16)));
  const attune::TensorMap named = {{"a", torch::rand({2})}, {"b", torch::zeros({}, at::kLong)}};
  PrintValue("named tensors",
             AreEqual(group
                          .CallOne(
                              0, [](Nothing&, attune::TensorMap map) { return map; }, named)
                          .get(),
                      named));
  const auto [count, tensors] =
      group
          .CallOne(
              0,
              [](Nothing&, const std::vector<at::Tensor>& all, std::optional<at::Tensor> more) {
                return std::tuple(all.size() + (more ? 1 : 0),
                                  std::vector<at::Tensor>{all[0] + all[1], *more});
              },
              std::vector<at::Tensor>{torch::ones({2}), torch::ones({2})},
              std::optional<at::Tensor>(torch::zeros({1})))
          .get();
  PrintValue("tensors in containers", count == 3 && AreEqual(tensors[0], 2 * torch::ones({2})));

  const at::Tensor parameter = torch::ones({2}, torch::requires_grad());
  PrintValue("requires a gradient", group.CallOne(0, echo, parameter).get().requires_grad());
  at::Tensor written = group.CallOne(0, echo, parameter).get();
  written.add_(1);
  PrintValue("writable", AreEqual(written, 2 * torch::ones({2})));
  at::Tensor changing = torch::zeros({2});
  auto copied = group.CallOne(0, echo, changing);
  changing.fill_(9);
  PrintValue("copied at the call", AreEqual(copied.get(), torch::zeros({2})));
  try {
    group.CallOne(0, echo, torch::ones({2}, at::kComplexDouble));
  } catch (const attune::Error& error) {
    PrintValue("cannot be sent", error.what());
  }
  try {
    group.CallOne(0, [](Nothing&) { return torch::ones({2}, at::kComplexDouble); }).get();
  } catch (const attune::WorkerError& error) {
    PrintValue("cannot be returned", error.what());
  }
  PrintValue("still works", survives(torch::ones({1})));
}

void Large() {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point began) {
    return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
  };
  attune::WorkerGroup<Nothing> group(2);
  const at::Tensor large = torch::arange(50 * 1024 * 1024 / 4, at::kFloat);  // exact in float
  auto began = Clock::now();
  const auto arrived = attune::GetAll(
      group.Call([](Nothing&, const at::Tensor& sent) { return sent[-1].item<double>(); }, large));
  std::cerr << "50 MiB to two workers: " << since(began) << " ms\n";
  PrintValue("sent", arrived == std::vector<double>(2, static_cast<double>(large.size(0) - 1)));
  began = Clock::now();
  const auto back =
      attune::GetAll(group.Call([](Nothing&, const at::Tensor& sent) { return sent * 2; }, large));
  PrintValue("returned", AreEqual(back[0], large * 2) && AreEqual(back[1], large * 2));
  std::cerr << "50 MiB to two workers and back: " << since(began) << " ms\n";
  began = Clock::now();
  constexpr int kCalls = 10'000;
  for (int i = 0; i < kCalls; ++i) group.CallOne(0, [](Nothing&) {}).get();
  std::cerr << "a call and its answer: " << since(began) * 1000 / kCalls << " us\n";
}

void Averages() {
  attune::WorkerGroup<Net> group(2);
  PrintValue("worker 0", Values(group.GetWeights()));
  PrintValue("worker 1", Values(group.GetWeights(1)));
  const attune::TensorMap mean = group.AverageWeights();
  PrintValue("mean", Values(mean));
  PrintValue("set on all",
             AreEqual(group.GetWeights(0), mean) && AreEqual(group.GetWeights(1), mean));
  attune::TensorMap zeros = mean;
  for (auto& [name, tensor] : zeros) tensor = torch::zeros_like(tensor);
  group.SetWeights(zeros, 1);
  PrintValue("one set",
             AreEqual(group.GetWeights(0), mean) && AreEqual(group.GetWeights(1), zeros));
  group.SetWeights(zeros);
  PrintValue("all set",
             AreEqual(group.GetWeights(0), zeros) && AreEqual(group.GetWeights(1), zeros));
  try {
    group.SetWeights({{"0.weight", torch::zeros({7})}}, 1);
  } catch (const attune::WorkerError& error) {
    PrintValue("refused", error.what());
  }
  PrintValue("unchanged", AreEqual(group.GetWeights(1), zeros));
}

void AveragesOfModules() {
  attune::WorkerGroup<torch::nn::Linear> holders({.num_workers = 2, .seed = 1}, 2, 1);
  const auto first = holders.GetWeights(0), second = holders.GetWeights(1);
  PrintValue("same draws", AreEqual(first, second));
  const auto mean = holders.AverageWeights();
  PrintValue("holders", mean.at("weight").allclose((first.at("weight") + second.at("weight")) / 2));

  attune::WorkerGroup<DifferentlyShaped> modules(2);
  PrintValue("modules", modules.GetWeights(1).at("line.weight").sizes());
  try {
    modules.AverageWeights();
  } catch (const attune::Error& error) {
    PrintValue("refused", error.what());
  }
}

void WithATrainer() {
  attune::TorchTrainer trainer(
      attune::Creators{.model = [](const attune::Config&) { return torch::nn::Linear(1, 1); },
                       .data = [](const attune::Config&) { return Points(); },
                       .optimizer =
                           [](torch::nn::Linear& line, const attune::Config&) {
                             return torch::optim::SGD(line->parameters(), 0.1);
                           },
                       .loss = [](const attune::Config&) { return torch::nn::MSELoss(); }},
      {.num_workers = 2, .batch_size = 8});
  attune::WorkerGroup<Nothing> group(2);
  auto sums = group.Call([](Nothing&, const at::Tensor& x) { return x.sum().item<double>(); },
                         torch::ones({4}));
  const auto epoch = trainer.Train().epoch;
  const auto values = attune::GetAll(std::move(sums));
  PrintValue("epoch", epoch);
  PrintValue("sums", values[0] + values[1]);
}

}  // namespace group
