#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

constexpr int64_t kMinuteUs = 60'000'000;

// An executor that has been connected for a minute is not lost.
class Connections final : public Checker {
 public:
  using Checker::Checker;

  void OnQuietMinute(Time now) override {
    for (const auto& [name, executor] : books_.executors) {
      const Time* since = reality_.ConnectedSince(name);
      if (executor.lost && since != nullptr && now.us - since->us > kMinuteUs)
        Report("executor " + name +
               " has been connected for more than a minute but counts as lost");
    }
  }
};

}  // namespace

std::unique_ptr<Checker> CheckConnections(const Evidence& evidence) {
  return std::make_unique<Connections>(evidence);
}

}  // namespace attune::sim
