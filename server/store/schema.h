#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "server/store/sqlite.h"

namespace attune::server {

// "Attn" in ASCII. With it, `file` and Attune can tell a database of Attune from other SQLite
// files.
inline constexpr int64_t kApplicationId = 0x4174746e;

// Creates the tables of a new database in one transaction. Begins to rebuild the tables that derive
// from the log (table_build.h) if another version of Attune defined or filled them differently.
// kCorrupt: the file is damaged, belongs to another program or has another format. The message says
// which, and what to do.
Status PrepareSchema(sqlite::Connection& connection, const std::string& path);

// The error of a database that SQLite cannot read.
Error Damaged(const std::string& path, const Error& error);

// Checks that the database that is attached as `log` has the format and the tables of this program.
Status CheckSchema(sqlite::Connection& connection, const std::string& path);

}  // namespace attune::server
