#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "server/store/sqlite.h"

namespace attune::server {

// Opens a database without its server, which may be running in another process. The database is
// attached read-only as `log` to a writable temporary database. kNotFound: there is no such file.
// kCorrupt: it is not a database of this version of Attune. The message says what to do.
Result<std::unique_ptr<sqlite::Connection>> OpenOffline(const std::string& path);

// Copies a database to a new file while a server may be writing to it. Checks the copy (check.h)
// before the file gets its final name. kConflict: the new file exists already.
Status Backup(const std::string& from, const std::string& to);

// Replaces `database`, which need not exist, by the file `by` from Backup. Keeps the earlier
// database, with its -wal file, and returns its new name; empty: there was none. REQUIRES: nobody
// has either file open, and both are in the same folder.
Result<std::string> Replace(const std::string& database, const std::string& by);

// Returns the space of deleted rows to the disk. kConflict: another process has the database open;
// nothing is changed.
Status Vacuum(const std::string& path);

}  // namespace attune::server
