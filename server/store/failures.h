#pragma once

#include "base/result.h"
#include "server/store/reader.h"
#include "server/store/sqlite.h"

// Groups the failed and lost attempts of a sweep by message.
namespace attune::server {

// See Reader::GroupFailures.
Result<Failures> ReadFailures(sqlite::Connection& connection, SweepId sweep);

}  // namespace attune::server
