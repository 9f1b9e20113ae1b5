#include "server/store/schema.h"

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/version.h"
#include "server/store/tables/table_build.h"
#include "server/store/tables/tables.h"

namespace attune::server {
namespace {

// The log and the tables beside it, from which everything else derives (tables.h):
// - `actor` caused the event; null means the service.
// - Snapshots are stored in parts, because a value of SQLite has at most a gigabyte.
// - `ended_sweeps` contains the states of ended sweeps. `until` is the first snapshot that does not
//   need the row.
// - `erased` marks the events that were erased with their sweeps. A row describes kErasedRange
//   events from `first` to `last`; `bits` has one bit for each, the lowest first.
// - `erasures` contains the deleted sweeps whose events up to `last` must still be erased. Once an
//   erasure has `begun`, all these events count as erased, and those before `next` are erased.
//   `next` 0 means that rows of tables remain.
// - `building` has a row while new tables are built: their form, and the last event in them.
// - `written_by` has one row: the version of Attune that last wrote the file, and the form of the
//   tables that derive from the log; 0 while new ones are built. Every format has this table, so
//   that a program can name the version that wrote a newer format.
constexpr std::string_view kLogSql = R"sql(
  CREATE TABLE events (
    seq     INTEGER PRIMARY KEY,
    sweep   INTEGER,
    trial   INTEGER,
    time    INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    version INTEGER NOT NULL,
    payload TEXT    NOT NULL,
    actor   TEXT
  );
  CREATE TABLE snapshots (
    seq     INTEGER NOT NULL,
    part    INTEGER NOT NULL,
    payload BLOB    NOT NULL,
    UNIQUE (seq, part)
  );
  CREATE TABLE ended_sweeps (
    sweep   INTEGER NOT NULL,
    mark    INTEGER NOT NULL,
    payload BLOB    NOT NULL,
    until   INTEGER,
    UNIQUE (sweep, mark)
  );
  CREATE TABLE written_by (
    version TEXT    NOT NULL,
    tables  INTEGER NOT NULL
  );
)sql";
constexpr std::string_view kLaterSql = R"sql(
  CREATE TABLE IF NOT EXISTS erased (
    first INTEGER PRIMARY KEY,
    last  INTEGER NOT NULL,
    bits  BLOB    NOT NULL
  );
  CREATE TABLE IF NOT EXISTS erasures (
    sweep INTEGER PRIMARY KEY,
    first INTEGER NOT NULL,
    last  INTEGER NOT NULL,
    next  INTEGER NOT NULL DEFAULT 0,
    begun INTEGER NOT NULL DEFAULT 0
  );
  CREATE TABLE IF NOT EXISTS building (
    seq    INTEGER NOT NULL,
    tables INTEGER NOT NULL
  );
)sql";

struct Writer {
  std::string version;
  int64_t tables = 0;
  bool operator==(const Writer&) const = default;
};

Writer ThisProgram() { return {kVersion, TablesForm()}; }

// Reads the row of `written_by`; the result is empty if there is no row. `schema` is `main` or
// `log`.
Result<Writer> ReadWriter(sqlite::Connection& connection, const std::string& schema) {
  sqlite::Rows rows = connection.Query("SELECT version, tables FROM " + schema + ".written_by");
  if (rows.Next()) return Writer{std::string(rows.Text(0)), rows.Integer(1)};
  if (!rows.status().ok()) return rows.status().error();
  return Writer{};
}

Error OtherFormat(const std::string& path, int64_t format, const Result<Writer>& writer) {
  const bool is_known = writer.ok() && !writer->version.empty();
  const std::string version =
      is_known ? "Attune " + writer->version : "a development version of Attune";
  const std::string remedy = is_known && format > kFormat ? "start " + version + " or a newer one"
                                                          : "start the version that wrote it";
  return {ErrorCode::kCorrupt, path + " has format " + std::to_string(format) + ", written by " +
                                   version + "; this is Attune " + kVersion +
                                   ", which reads format " + std::to_string(kFormat) + ": " +
                                   remedy + ", or choose another data folder"};
}

Error WrongProgramError(const std::string& path) {
  return {ErrorCode::kCorrupt, path + " is a database of another program, not Attune's"};
}

}  // namespace

Error Damaged(const std::string& path, const Error& error) {
  return {error.code == ErrorCode::kInternal ? ErrorCode::kCorrupt : error.code,
          path + " cannot be read: " + error.message + "; restore it from a backup"};
}

Status PrepareSchema(sqlite::Connection& connection, const std::string& path) {
  sqlite::Transaction transaction(connection, sqlite::Transaction::Kind::kWrite);
  if (!transaction.status().ok()) return transaction.status();
  const auto application = connection.Number("PRAGMA application_id");
  if (!application.ok()) return application.error();
  const auto format = connection.Number("PRAGMA user_version");
  if (!format.ok()) return format.error();
  const auto tables = connection.Number("SELECT count(*) FROM sqlite_schema");
  if (!tables.ok()) return tables.error();

  const bool is_new = *application == 0 && *format == 0 && *tables == 0;
  if (is_new) {
    transaction.Execute(std::string(kLogSql));
    transaction.Execute("PRAGMA application_id = " + std::to_string(kApplicationId));
    transaction.Execute("PRAGMA user_version = " + std::to_string(kFormat));
    if (!transaction.status().ok()) return transaction.status();
  } else if (*application != kApplicationId) {
    const Error error = WrongProgramError(path);
    return Error{error.code, error.message + ": move it away or choose another data folder"};
  }
  const Result<Writer> writer = ReadWriter(connection, "main");
  if (!is_new && *format != kFormat) return OtherFormat(path, *format, writer);
  if (!writer.ok()) return writer.error();
  transaction.Execute(std::string(kLaterSql));
  const Writer program = ThisProgram();
  if (is_new) {
    transaction.Execute(TablesSql());
    transaction.Execute(ViewsSql());
  }
  if (!is_new && writer->tables != program.tables) {
    BeginBuild(transaction);
  } else if (*writer != program) {
    transaction.Run("DELETE FROM written_by");
    transaction.Run("INSERT INTO written_by (version, tables) VALUES (?, ?)", program.version,
                    program.tables);
  }
  return transaction.Commit();
}

Status CheckSchema(sqlite::Connection& connection, const std::string& path) {
  const auto tables = connection.Number("SELECT count(*) FROM log.sqlite_schema");
  if (!tables.ok()) return Damaged(path, tables.error());
  if (*tables == 0)
    return Error{ErrorCode::kCorrupt,
                 path + " is empty; start `attune serve` on it, which creates the tables"};
  const auto application = connection.Number("PRAGMA log.application_id");
  if (!application.ok()) return Damaged(path, application.error());
  if (*application != kApplicationId) return WrongProgramError(path);
  const auto format = connection.Number("PRAGMA log.user_version");
  if (!format.ok()) return Damaged(path, format.error());
  const Result<Writer> writer = ReadWriter(connection, "log");
  if (*format != kFormat) return OtherFormat(path, *format, writer);
  if (!writer.ok()) return Damaged(path, writer.error());
  if (writer->tables == ThisProgram().tables) return {};
  return Error{ErrorCode::kCorrupt,
               path + " has the tables of Attune " + writer->version + "; this is Attune " +
                   kVersion + "; start `attune serve` on it and wait until it has rebuilt them"};
}

}  // namespace attune::server
