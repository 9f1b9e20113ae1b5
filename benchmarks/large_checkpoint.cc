// Saves a state of many gibibytes and continues to train meanwhile. With --resume, loads the state.
//
//   large_checkpoint --checkpoint-dir DIR --checkpoint-every 1 -- DIR [GIBIBYTES]
//   large_checkpoint --resume DIR/step-1-attempt-1 -- DIR [GIBIBYTES]
//
// Prints how long training waited for saving, the number of passes over the model until the
// checkpoint was durable, and the rank's peak memory as a multiple of the state's size. Memory is
// the resident memory of the process (VmHWM), including mapped files.

#include <attune/attune.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/parse_number.h"
#include "benchmarks/arguments.h"

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kTensors = 64;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double PeakBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmHWM:") continue;
    status >> word;
    return std::stod(word) * 1024;
  }
  return 0;
}

class Model : public torch::nn::Module {
 public:
  explicit Model(double gibibytes) {
    const auto numbers = static_cast<std::int64_t>(gibibytes * (1 << 30) / sizeof(float));
    for (std::int64_t i = 0; i < kTensors; ++i) {
      weights_.push_back(register_parameter("w" + std::to_string(i),
                                            torch::full({numbers / kTensors}, 1.0F), false));
    }
  }

  void Pass(std::int64_t number) {
    for (torch::Tensor& weight : weights_) weight.add_(static_cast<float>(number));
  }

  double bytes() const { return static_cast<double>(kTensors * weights_[0].nbytes()); }

 private:
  std::vector<torch::Tensor> weights_;
};

bool HasCheckpoint(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("step-1-")) return true;
  }
  return false;
}

void Train(attune::Context& context, const fs::path& folder, double gibibytes) {
  Model model(gibibytes);
  const double before = PeakBytes() - model.bytes();
  const auto peak = [&] { return (PeakBytes() - before) / model.bytes(); };
  const auto began = Clock::now();
  if (context.resumed()) {
    context.checkpoint()->Read("model", model);
    std::printf("loaded in %.1f s; memory at most %.2f times the state\n", SecondsSince(began),
                peak());
    return;
  }
  if (!context.Report({}, [&](auto& checkpoint) { checkpoint.Write("model", model); })) return;
  const double waited = SecondsSince(began);
  std::int64_t passes = 0;
  while (!HasCheckpoint(folder)) model.Pass(++passes);
  std::printf(
      "waited %.1f s for saving; %lld passes in the %.1f s until it was durable; "
      "memory at most %.2f times the state\n",
      waited, static_cast<long long>(passes), SecondsSince(began) - waited, peak());
}

}  // namespace

int main(int argc, char** argv) {
  char** const end = argv + argc;
  // This program's arguments follow "--".
  char** const separator = std::find(argv, end, std::string_view("--"));
  const auto has = [&](std::string_view option) {
    return std::find(argv, separator, option) != separator;
  };
  const double gibibytes =
      end - separator > 2 ? attune::ParseNumber<double>(separator[2]).value_or(0) : 4;
  // Without a checkpoint folder, Train() would wait for a checkpoint for ever.
  if (end - separator < 2 || end - separator > 3 || gibibytes <= 0 ||
      !(has("--checkpoint-dir") || has("--resume"))) {
    attune::benchmarks::EndWithUsage(
        "large_checkpoint --checkpoint-dir DIR --checkpoint-every 1 -- DIR [GIBIBYTES]\n"
        "       large_checkpoint --resume DIR/step-1-attempt-1 -- DIR [GIBIBYTES]");
  }
  return attune::Main(argc, argv,
                      [folder = fs::path(separator[1]), gibibytes](attune::Context& context) {
                        Train(context, folder, gibibytes);
                      });
}
