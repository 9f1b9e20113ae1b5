#include "tests/sim/checkers/checkers.h"

namespace attune::sim {

std::vector<std::unique_ptr<Checker>> AllCheckers(const Evidence& evidence) {
  std::vector<std::unique_ptr<Checker>> checkers;
  for (auto make :
       {CheckSlots, CheckAttempts, CheckCheckpoints, CheckLifecycle, CheckLimits, CheckVerdicts,
        CheckTurns, CheckConnections, CheckDisks, CheckEdits, CheckGrowth, CheckIdleness})
    checkers.push_back(make(evidence));
  return checkers;
}

}  // namespace attune::sim
