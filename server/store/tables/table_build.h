#pragma once

#include <optional>

#include "base/result.h"
#include "core/base/ids.h"
#include "server/store/sqlite.h"

// Rebuilds the tables for people next to the old ones. The names of the new tables begin with
// kNextTables. A row of `building` contains the last event that they include. When that is the last
// event of the log, they replace the old tables. Each step is a transaction, so the next process
// can continue a build that was interrupted.
//
// During a build the old tables are not kept up to date, and the form in `written_by` is 0. Errors
// stay in the transaction.
namespace attune::server {

inline constexpr const char* kNextTables = "next_";

// The last event that the new tables include; nullopt: no build.
Result<std::optional<EventSeq>> BuildPosition(sqlite::Connection& connection);

// Continues a build of this program's form, or begins one.
void BeginBuild(sqlite::Transaction& transaction);

// Records that the new tables include the log up to `seq`.
void SaveBuildPosition(sqlite::Transaction& transaction, EventSeq seq);

// Replaces the old tables. REQUIRES: the new tables include the whole log.
void FinishBuild(sqlite::Transaction& transaction);

}  // namespace attune::server
