#pragma once

#include <memory>
#include <vector>

#include "tests/sim/checkers/checker.h"

namespace attune::sim {

std::unique_ptr<Checker> CheckSlots(const Evidence& evidence);
std::unique_ptr<Checker> CheckAttempts(const Evidence& evidence);
std::unique_ptr<Checker> CheckCheckpoints(const Evidence& evidence);
std::unique_ptr<Checker> CheckLifecycle(const Evidence& evidence);
std::unique_ptr<Checker> CheckLimits(const Evidence& evidence);
std::unique_ptr<Checker> CheckVerdicts(const Evidence& evidence);
std::unique_ptr<Checker> CheckTurns(const Evidence& evidence);
std::unique_ptr<Checker> CheckConnections(const Evidence& evidence);
std::unique_ptr<Checker> CheckDisks(const Evidence& evidence);
std::unique_ptr<Checker> CheckEdits(const Evidence& evidence);
std::unique_ptr<Checker> CheckGrowth(const Evidence& evidence);
std::unique_ptr<Checker> CheckIdleness(const Evidence& evidence);

std::vector<std::unique_ptr<Checker>> AllCheckers(const Evidence& evidence);

}  // namespace attune::sim
