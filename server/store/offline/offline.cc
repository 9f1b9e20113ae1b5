#include "server/store/offline/offline.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <system_error>

#include "base/result.h"
#include "server/store/erasure.h"
#include "server/store/offline/check.h"
#include "server/store/schema.h"

namespace attune::server {
namespace {

namespace fs = std::filesystem;
using sqlite::Connection;

constexpr int kLockTimeoutMs = 5'000;
constexpr int kErasingSteps = 10'000;  // per transaction

Error NoFile(const std::string& path, const std::error_code& error) {
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
    return {ErrorCode::kUnavailable, "cannot open the database " + path + ": " + error.message()};
  return {ErrorCode::kNotFound,
          "there is no database " + path +
              "; give a data folder that a server has used, or the database file"};
}

// Escapes a path for SQLite's URIs.
std::string EscapePath(const std::string& path) {
  std::string escaped;
  for (const char c : path) {
    if (c == '%')
      escaped += "%25";
    else if (c == '?')
      escaped += "%3f";
    else if (c == '#')
      escaped += "%23";
    else
      escaped += c;
  }
  return escaped;
}

Status Copy(Connection& from, const std::string& to) {
  auto target = Connection::Open(to, Connection::Mode::kReadWriteCreate, kLockTimeoutMs);
  if (!target.ok()) return target.error();
  sqlite3_backup* const backup =
      sqlite3_backup_init((*target)->handle(), "main", from.handle(), "log");
  if (backup == nullptr) return sqlite::ErrorOf((*target)->handle(), SQLITE_ERROR, "copying");
  sqlite3_backup_step(backup, -1);  // copies all pages from one snapshot
  const int code = sqlite3_backup_finish(backup);
  if (code != SQLITE_OK) return sqlite::ErrorOf((*target)->handle(), code, "writing " + to);
  return {};
}

// Erases the remaining rows of deleted sweeps. Removes the snapshots that need them; the next start
// then reads the log instead.
Status FinishErasures(Connection& connection) {
  for (bool more = true; more;) {
    sqlite::Transaction transaction(connection, sqlite::Transaction::Kind::kWrite);
    BeginErasures(transaction, EventSeq(std::numeric_limits<int64_t>::max()));
    transaction.Run(
        "DELETE FROM ended_sweeps WHERE NOT EXISTS (SELECT 1 FROM snapshots)"
        " OR until <= (SELECT min(seq) FROM snapshots)");
    int steps = 0;
    more = EraseSome(transaction, [&] { return ++steps == kErasingSteps; });
    if (Status erased = transaction.Commit(); !erased.ok()) return erased;
  }
  return {};
}

Status Verify(const std::string& path) {
  const auto findings = CheckDatabase(path);
  if (!findings.ok()) return findings.error();
  for (const Finding& finding : *findings) {
    if (finding.fault)
      return Error{ErrorCode::kCorrupt,
                   "the copy is damaged (" + finding.what + ": " + *finding.fault + ")"};
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Connection>> OpenOffline(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return NoFile(path, error);
  auto connection = Connection::Open("", Connection::Mode::kTemporary, kLockTimeoutMs);
  if (!connection.ok()) return connection.error();
  const std::string uri = "file:" + EscapePath(fs::absolute(path).string()) + "?mode=ro";
  if (Status attached = (*connection)->Run("ATTACH ? AS log", uri); !attached.ok())
    return Damaged(path, attached.error());
  if (Status known = CheckSchema(**connection, path); !known.ok()) return known.error();
  return connection;
}

Status Backup(const std::string& from, const std::string& to) {
  auto source = OpenOffline(from);
  if (!source.ok()) return source.error();
  std::error_code error;
  if (fs::exists(to, error))
    return Error{ErrorCode::kConflict, to + " already exists; give another name, or remove it"};
  const std::string partial = to + ".partial";
  fs::remove(partial, error);
  const int probe = open(partial.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (probe < 0)
    return Error{ErrorCode::kUnavailable, "cannot write " + to + ": " + std::strerror(errno)};
  close(probe);
  Status done = Copy(**source, partial);
  if (done.ok()) done = Verify(partial);
  for (const char* beside : {"-wal", "-shm"}) fs::remove(partial + beside, error);
  if (done.ok()) {
    fs::rename(partial, to, error);
    if (!error) return {};
    done = Error{ErrorCode::kUnavailable, "cannot write " + to + ": " + error.message()};
  }
  fs::remove(partial, error);
  return done;
}

// Until the last step the earlier database stays in place. If the process dies between the steps,
// the earlier database may lack its -wal file, which is then next to the kept copy.
Result<std::string> Replace(const std::string& database, const std::string& by) {
  std::error_code error;
  std::string kept;
  if (fs::exists(database, error)) {
    for (int i = 1; kept.empty() || fs::exists(kept, error); ++i)
      kept = database + ".replaced-" + std::to_string(i);
    fs::create_hard_link(database, kept, error);
    if (!error && fs::exists(database + "-wal"))
      fs::rename(database + "-wal", kept + "-wal", error);
    if (error)
      return Error{ErrorCode::kUnavailable,
                   "cannot keep a copy of " + database + ": " + error.message()};
  }
  fs::remove(database + "-wal", error);  // left over from a database that is gone
  fs::remove(database + "-shm", error);
  fs::rename(by, database, error);
  if (error)
    return Error{ErrorCode::kUnavailable, "cannot write " + database + ": " + error.message()};
  return kept;
}

Status Vacuum(const std::string& path) {
  if (auto known = OpenOffline(path); !known.ok()) return known.error();
  auto connection = Connection::Open(path, Connection::Mode::kReadWriteCreate, 0);
  if (!connection.ok()) return connection.error();
  // Leaving WAL mode needs exclusive access to the file, which a running server keeps open.
  Status alone = (*connection)->Execute("PRAGMA journal_mode = DELETE");
  if (!alone.ok() && alone.error().code == ErrorCode::kUnavailable)
    return Error{
        ErrorCode::kConflict,
        path + " is in use; stop the server and all other programs that read it, then try again"};
  if (!alone.ok()) return Damaged(path, alone.error());
  Status vacuumed = FinishErasures(**connection);
  if (vacuumed.ok()) vacuumed = (*connection)->Execute("VACUUM");
  const Status again = (*connection)->Execute("PRAGMA journal_mode = WAL");
  if (!vacuumed.ok())
    return Error{vacuumed.error().code,
                 path + ": " + vacuumed.error().message +
                     "; nothing was lost, but this needs free space for a second copy"};
  return again;
}

}  // namespace attune::server
