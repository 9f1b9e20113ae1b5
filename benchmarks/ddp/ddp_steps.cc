// Trains one of three models for the requested numbers of steps. ddp_steps.py does the same in
// Python.
//
//   ddp_steps --workers N --cpus 1 --config model=NAME -- FOLDER
//
// Rank r reads numbers of steps from the pipe FOLDER/r.in; 0 ends it. It answers each number with a
// line in FOLDER/r.out:
//
// - the time of the steps in seconds, and their processor time
// - the loss of the last step
// - for the first steps, as fractions of a step: the communication, and the part of it that did not
//   overlap with the backward pass

#include <attune/attune.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace nn = torch::nn;

constexpr std::int64_t kClasses = 10;
// LibTorch measures only the first ten steps and every hundredth step after them.
constexpr std::size_t kTimedSteps = 10;

nn::Conv2d Convolution(std::int64_t in, std::int64_t out, std::int64_t stride, std::int64_t size) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, size).stride(stride).padding(size / 2).bias(false));
}

// The order of the layers matters, because each draws its weights from the same random stream.
nn::Sequential SmallConvnet() {
  nn::Sequential net;
  std::int64_t in = 1;
  for (const std::int64_t out : {16, 32}) {
    net->push_back(nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1)));
    net->push_back(nn::ReLU());
    net->push_back(nn::MaxPool2d(nn::MaxPool2dOptions(2)));
    in = out;
  }
  net->push_back(nn::Flatten());
  net->push_back(nn::Linear(32 * 7 * 7, 64));
  net->push_back(nn::ReLU());
  net->push_back(nn::Linear(64, kClasses));
  return net;
}

// He et al., Deep Residual Learning for Image Recognition, CVPR 2016.
struct BlockImpl : nn::Module {
  BlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride)
      : conv1(register_module("conv1", Convolution(in, out, stride, 3))),
        bn1(register_module("bn1", nn::BatchNorm2d(out))),
        conv2(register_module("conv2", Convolution(out, out, 1, 3))),
        bn2(register_module("bn2", nn::BatchNorm2d(out))) {
    if (in == out) return;
    shortcut = register_module(
        "shortcut", nn::Sequential(Convolution(in, out, stride, 1), nn::BatchNorm2d(out)));
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = bn2(conv2(torch::relu(bn1(conv1(x)))));
    return torch::relu(y + (shortcut ? shortcut->forward(x) : x));
  }
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Sequential shortcut = nullptr;
};
TORCH_MODULE(Block);

// The variant for images of 32 × 32: the first convolution is 3 × 3, without pooling.
nn::Sequential Resnet18() {
  nn::Sequential net(Convolution(3, 64, 1, 3), nn::BatchNorm2d(64), nn::ReLU());
  std::int64_t in = 64;
  for (const std::int64_t out : {64, 128, 256, 512}) {
    net->push_back(Block(in, out, in == out ? 1 : 2));
    net->push_back(Block(out, out, 1));
    in = out;
  }
  net->push_back(nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions(1)));
  net->push_back(nn::Flatten());
  net->push_back(nn::Linear(512, kClasses));
  return net;
}

struct ResidualImpl : nn::Module {
  explicit ResidualImpl(std::int64_t width)
      : linear(register_module("linear", nn::Linear(width, width))) {}
  at::Tensor forward(const at::Tensor& x) { return x + torch::relu(linear(x)) * 0.1; }
  nn::Linear linear;
};
TORCH_MODULE(Residual);

// A model with 200 parameter tensors of at most 1,024 numbers each.
nn::Sequential Mlp() {
  nn::Sequential net;
  for (int layer = 0; layer < 99; ++layer) net->push_back(Residual(32));
  net->push_back(nn::Linear(32, kClasses));
  return net;
}

struct Task {
  nn::Sequential net{nullptr};
  std::vector<std::int64_t> shape;  // shape of a rank's batch
};

Task MakeTask(const std::string& name) {
  if (name == "convnet") return {SmallConvnet(), {32, 1, 28, 28}};
  if (name == "resnet18") return {Resnet18(), {8, 3, 32, 32}};
  if (name == "mlp") return {Mlp(), {16, 32}};
  throw std::invalid_argument("no model " + name);
}

double SecondsSince(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Train(attune::Context& context) {
  torch::manual_seed(1);
  const Task task = MakeTask(context.config().Text("model"));
  auto model = context.PrepareModel(task.net);
  torch::optim::SGD sgd(model->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  torch::manual_seed(100 + context.rank());
  const at::Tensor x = torch::randn(task.shape);
  const at::Tensor y = torch::randint(kClasses, {task.shape[0]});

  std::vector<double> timed;  // seconds of the first steps
  std::vector<double> communication;
  std::vector<double> exposed;
  const std::string pipe = context.args().at(0) + "/" + std::to_string(context.rank());
  std::ifstream in(pipe + ".in");
  std::ofstream out(pipe + ".out");
  out.precision(std::numeric_limits<double>::max_digits10);
  for (int steps = 0; in >> steps && steps > 0;) {
    at::Tensor loss;
    const auto began = std::chrono::steady_clock::now();
    const std::clock_t used = std::clock();
    for (int step = 0; step < steps; ++step) {
      const auto step_began = std::chrono::steady_clock::now();
      sgd.zero_grad();
      loss = torch::cross_entropy_loss(model(x), y);
      loss.backward();
      sgd.step();
      if (timed.size() < kTimedSteps) {
        timed.push_back(SecondsSince(step_began));
        const attune::GradientSyncTimes times = model.sync_times();
        communication.push_back(times.communication);
        exposed.push_back(times.communication - times.overlap);
      }
    }
    const double seconds = SecondsSince(began);
    const double processor = static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC;
    out << seconds << ' ' << processor << ' ' << loss.item<double>() << ' '
        << Median(communication) / Median(timed) << ' ' << Median(exposed) / Median(timed)
        << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) { return attune::Main(argc, argv, Train); }
