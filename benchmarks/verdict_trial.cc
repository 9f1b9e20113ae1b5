// Reports after each millisecond until it is told to leave, and writes down when each Report()
// began and returned on this rank, in nanoseconds of a clock that all ranks share:
// report-times-RANK.

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
    for (bool goes_on = true; goes_on;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // a step on a GPU, say
      const std::int64_t began = Now();
      goes_on = context.Report({{"loss", 1.0}});
      times.emplace_back(began, Now());
    }
    std::ofstream out("report-times-" + std::to_string(context.rank()));
    for (const auto& [began, returned] : times) out << began << ' ' << returned << '\n';
  });
}
