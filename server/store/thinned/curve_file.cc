#include "server/store/thinned/curve_file.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "base/result.h"
#include "system/system_error.h"
#include "system/unique_fd.h"

namespace attune::server {
namespace {

constexpr int64_t kCurveFileId = 0x41746376;  // "Atcv" in ASCII

constexpr int kFileTimeoutMs = 5'000;

// - `followed` has one row, a FollowedLog.
// - `curves` has a row for each curve: `logged` is 1 for values that were logged between reports.
//   `points` is ThinnedCurve::ToBytes.
// - `attempts` has the newest attempt of each trial that resumed, and the step from which it did.
constexpr std::string_view kTablesSql = R"sql(
  CREATE TABLE followed (
    identity INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    built    INTEGER NOT NULL
  );
  CREATE TABLE curves (
    sweep  INTEGER NOT NULL,
    trial  INTEGER NOT NULL,
    metric TEXT    NOT NULL,
    logged INTEGER NOT NULL,
    points BLOB    NOT NULL,
    UNIQUE (sweep, trial, metric, logged)
  );
  CREATE INDEX curves_by_metric ON curves (sweep, metric, trial, logged);
  CREATE TABLE attempts (
    sweep        INTEGER NOT NULL,
    trial        INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    resumed_from INTEGER NOT NULL,
    PRIMARY KEY (sweep, trial)
  ) WITHOUT ROWID;
)sql";

Status CreateTables(sqlite::Connection& connection) {
  if (Status set = connection.Execute("PRAGMA journal_mode = WAL"); !set.ok()) return set;
  sqlite::Transaction transaction(connection, sqlite::Transaction::Kind::kWrite);
  transaction.Execute(std::string(kTablesSql));
  transaction.Execute("PRAGMA application_id = " + std::to_string(kCurveFileId));
  transaction.Execute("PRAGMA user_version = " + std::to_string(kCurveFileFormat));
  WriteFollowed(transaction, {});
  return transaction.Commit();
}

Status CheckFormat(sqlite::Connection& connection, const std::string& path) {
  const auto id = connection.Number("PRAGMA application_id");
  if (!id.ok()) return id.error();
  const auto format = connection.Number("PRAGMA user_version");
  if (!format.ok()) return format.error();
  if (*id == kCurveFileId && *format == kCurveFileFormat) return {};
  return Error{ErrorCode::kCorrupt, path + " has another format"};
}

}  // namespace

std::string CurveFileOf(const std::string& database) {
  return (std::filesystem::path(database).parent_path() / "curves.db").string();
}

Status CreateCurveFile(const std::string& path) {
  const std::string unfinished = path + ".new";
  RemoveCurveFile(unfinished);
  {
    const UniqueFd created(
        ::open(unfinished.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
    if (!created.valid()) return SystemError("creating " + unfinished, errno);
    auto connection = sqlite::Connection::Open(
        unfinished, sqlite::Connection::Mode::kReadWriteCreate, kFileTimeoutMs);
    if (!connection.ok()) return connection.error();
    if (Status filled = CreateTables(**connection); !filled.ok()) return filled;
  }
  RemoveCurveFile(path);
  if (std::rename(unfinished.c_str(), path.c_str()) != 0)
    return SystemError("creating " + path, errno);
  return {};
}

Result<std::unique_ptr<sqlite::Connection>> OpenCurveFile(const std::string& path,
                                                          sqlite::Connection::Mode mode) {
  if (std::error_code error; !std::filesystem::exists(path, error))
    return Error{ErrorCode::kNotFound, "there is no " + path};
  auto connection = sqlite::Connection::Open(path, mode, kFileTimeoutMs);
  if (!connection.ok()) return connection.error();
  if (Status checked = CheckFormat(**connection, path); !checked.ok()) return checked.error();
  if (mode == sqlite::Connection::Mode::kReadOnly) return connection;
  // A commit does not wait for the disk. If the machine fails, the file is consistent, but older.
  if (Status set = (*connection)->Execute("PRAGMA synchronous = NORMAL"); !set.ok())
    return set.error();
  return connection;
}

void RemoveCurveFile(const std::string& path) {
  std::error_code ignored;
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path + suffix, ignored);
}

Result<FollowedLog> ReadFollowed(sqlite::Connection& connection) {
  sqlite::Rows rows = connection.Query("SELECT identity, seq, built FROM followed");
  if (rows.Next())
    return FollowedLog{.identity = LogIdentity(static_cast<uint64_t>(rows.Integer(0))),
                       .seq = EventSeq(static_cast<uint64_t>(rows.Integer(1))),
                       .built = rows.Integer(2) != 0};
  if (!rows.status().ok()) return rows.status().error();
  return Error{ErrorCode::kCorrupt, "the file of curves is empty"};
}

void WriteFollowed(sqlite::Transaction& transaction, const FollowedLog& followed) {
  transaction.Run("DELETE FROM followed");
  transaction.Run("INSERT INTO followed (identity, seq, built) VALUES (?, ?, ?)",
                  followed.identity.value, followed.seq.value, followed.built ? 1 : 0);
}

}  // namespace attune::server
