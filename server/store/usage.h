#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/store/reader.h"
#include "server/store/sqlite.h"

// Reads which slots attempts have held, and for how long.
namespace attune::server {

// See Reader::Uses, Reader::HeldSlots and Reader::Joins.
Result<std::vector<TrialUse>> ReadUses(sqlite::Connection& connection, SweepId sweep);
Result<HeldPage> ReadHeldSlots(sqlite::Connection& connection, Time since, Time until,
                               const std::string& executor, size_t limit);
Result<std::vector<JoinRow>> ReadJoins(sqlite::Connection& connection);

}  // namespace attune::server
