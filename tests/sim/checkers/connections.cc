#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

constexpr int64_t kMinuteUs = 60'000'000;

// Whoever is connected is not lost, once everything had the time to be said.
class Connections final : public Checker {
 public:
  using Checker::Checker;

  void OnQuietMinute(Time now) override {
    for (const auto& [name, executor] : books_.executors) {
      const Time* since = reality_.ConnectedSince(name);
      if (executor.lost && since != nullptr && now.us - since->us > kMinuteUs)
        Find("executor " + name + " is connected for more than a minute, and lost");
    }
  }
};

}  // namespace

std::unique_ptr<Checker> CheckConnections(const Evidence& evidence) {
  return std::make_unique<Connections>(evidence);
}

}  // namespace attune::sim
