// Reports every millisecond until it is told to leave. Then writes when each Report() began and
// returned on this rank to the file report-times-RANK, in nanoseconds of a clock that all ranks
// share.

#include <attune/attune.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

std::int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

int main(int argc, char** argv) {
  return attune::Main(argc, argv, [](attune::Context& context) {
    std::vector<std::pair<std::int64_t, std::int64_t>> times;
    for (bool running = true; running;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // stands for a step on a GPU
      const std::int64_t began = Now();
      running = context.Report({{"loss", 1.0}});
      times.emplace_back(began, Now());
    }
    std::ofstream out("report-times-" + std::to_string(context.rank()));
    for (const auto& [began, returned] : times) out << began << ' ' << returned << '\n';
  });
}
