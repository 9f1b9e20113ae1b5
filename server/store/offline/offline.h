#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "server/store/sqlite.h"

namespace attune::server {

// A database that is looked at without a server of its own, perhaps while another process's runs:
// it is attached, for reading only, as `log` to a temporary database, which may be written.
// kNotFound when there is no such file, kCorrupt when it is no database of Attune's or not of this
// version; the message says what to do.
Result<std::unique_ptr<sqlite::Connection>> OpenBeside(const std::string& path);

// Copies a database, while a server may be writing to it, to a new file. What is copied is checked
// (check.h) before the file gets its name. kConflict when there is such a file already.
Status Backup(const std::string& from, const std::string& to);

// Puts the file, a database that Backup has made, in place of `database`, which need not exist. The
// earlier one stays, with its -wal file, under the name that is returned; empty: there was none.
// REQUIRES: nobody has either of them open, and both are in one folder.
Result<std::string> Replace(const std::string& database, const std::string& by);

// Gives the space of deleted rows back to the disk. kConflict while any other process has the
// database open, and nothing is changed.
Status Vacuum(const std::string& path);

}  // namespace attune::server
