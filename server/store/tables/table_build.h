#pragma once

#include <optional>

#include "base/result.h"
#include "core/base/ids.h"
#include "server/store/sqlite.h"

// Rebuilds the tables for people next to the old ones. The new ones have kNextTables before
// their names. A row of `building` has the last event that they know. When that is the last of the
// log, they take the place of the old ones. Each of these steps is a transaction, so a process that
// dies leaves a build that the next one continues.
//
// While a build is under way, the old tables are not kept up to date, and the form in `written_by`
// is 0. Errors stay in the transaction.
namespace attune::server {

inline constexpr const char* kNextTables = "next_";

// The last event that the new tables know; nullopt: none are being built.
Result<std::optional<EventSeq>> BuildPosition(sqlite::Connection& connection);

// Continues a build of this program's form, or else begins one.
void BeginBuild(sqlite::Transaction& transaction);

// The new tables know the log up to `seq`.
void NoteBuilt(sqlite::Transaction& transaction, EventSeq seq);

// The new tables know the whole log: they take the place of the old ones.
void FinishBuild(sqlite::Transaction& transaction);

}  // namespace attune::server
