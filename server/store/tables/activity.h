#pragma once

#include <cstddef>

#include "core/log/event.h"
#include "server/store/sqlite.h"

namespace attune::server {

// Longer notes are cut in `activity`. The log has them whole.
inline constexpr size_t kActivityNoteBytes = 1'000;

// Adds a row to `activity` if a user caused the event: someone with a token created or changed a
// sweep or a trial. The ends of trials that follow from an action on their sweep have no rows. The
// events need not name kTables as a consumer. REQUIRES: the other tables do not have the event yet.
//
// Errors stay in the transaction.
void AddActivity(sqlite::Transaction& transaction, const Event& event);

}  // namespace attune::server
