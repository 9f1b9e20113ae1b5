#pragma once

#include <cstdint>

#include "base/result.h"
#include "server/store/event_log.h"
#include "server/store/sqlite.h"

namespace attune::server {

// "Attn": how `file` and we tell an Attune database from any other SQLite file.
inline constexpr int64_t kApplicationId = 0x4174746e;

// What this program reads and writes: the number of migrations there are.
int64_t SchemaVersion();

// Makes a new database, or brings an older one forward, in one transaction. kCorrupt when the file
// is damaged, of another program or of a newer Attune; the message says which and what to do.
// `progress` is told of making the tables anew; it may be empty.
Status Migrate(sqlite::Connection& connection, const std::string& path, const OnProgress& progress);

}  // namespace attune::server
