#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "server/store/sqlite.h"

namespace attune::server {

// "Attn" in ASCII. It tells `file` and Attune a database of Attune from any other SQLite file.
inline constexpr int64_t kApplicationId = 0x4174746e;

// Creates the tables of a new database, in one transaction. Begins a build of the tables that
// derive from the log (table_build.h) if another version of Attune defined or filled them
// differently. Errors: kCorrupt if the file is damaged, belongs to another program or has another
// format; the message says which, and what to do.
Status PrepareSchema(sqlite::Connection& connection, const std::string& path);

// The error of a database that SQLite cannot read.
Error Damaged(const std::string& path, const Error& error);

// Checks that a database which is attached as `log` has the format and the tables of this program.
Status CheckSchema(sqlite::Connection& connection, const std::string& path);

}  // namespace attune::server
