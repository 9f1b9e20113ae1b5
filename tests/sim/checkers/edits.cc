#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// Each new trial lies in the search space that the sweep has at that time.
class Edits final : public Checker {
 public:
  using Checker::Checker;

  void OnEvent(const Event& event) override {
    const auto* created = std::get_if<TrialCreated>(&event.fact);
    if (created == nullptr) return;
    const SweepBook* sweep = books_.Find(created->trial.sweep);
    if (sweep == nullptr) return;
    if (const auto resolved = sweep->spec.space.Resolve(created->config); !resolved.ok())
      Report("trial " + ToString(created->trial) + " lies outside the search space, after " +
             std::to_string(sweep->edited) + " edits: " + resolved.error().message);
  }
};

}  // namespace

std::unique_ptr<Checker> CheckEdits(const Evidence& evidence) {
  return std::make_unique<Edits>(evidence);
}

}  // namespace attune::sim
