#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "core/base/ids.h"
#include "server/store/sqlite.h"

// The file of thinned curves. It derives from the log, so it may be deleted at any time.
namespace attune::server {

// Raise it if the tables or the bytes of a curve change.
inline constexpr int64_t kCurveFileFormat = 1;

// The path of the file that belongs to this database.
std::string CurveFileOf(const std::string& database);

// How far the file has followed the log.
struct FollowedLog {
  LogIdentity identity;  // the newest known identity of the log
  EventSeq seq;          // the curves contain the events up to here
  bool built = false;    // whether it has ever reached the end of the log
};

// Puts a file without curves in the place of the existing one. Only its owner can read it.
Status CreateCurveFile(const std::string& path);

// Opens the file. kNotFound: there is none. kCorrupt: it is damaged or has another format.
Result<std::unique_ptr<sqlite::Connection>> OpenCurveFile(const std::string& path,
                                                          sqlite::Connection::Mode mode);

// Deletes the file and the files that SQLite keeps next to it.
void RemoveCurveFile(const std::string& path);

Result<FollowedLog> ReadFollowed(sqlite::Connection& connection);  // kCorrupt: there is no row
void WriteFollowed(sqlite::Transaction& transaction, const FollowedLog& followed);

}  // namespace attune::server
