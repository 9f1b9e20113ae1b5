#include "server/store/sqlite.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "system/system_error.h"

namespace attune::server::sqlite {
namespace {

bool IsOutOfSpace(int system_error) { return IsStorageFull(system_error) || system_error == EFBIG; }

ErrorCode CodeOf(int extended, int system_error) {
  switch (extended) {
    case SQLITE_IOERR_READ:
    case SQLITE_IOERR_SHORT_READ:
    case SQLITE_IOERR_CORRUPTFS:
      return ErrorCode::kCorrupt;
    case SQLITE_IOERR_FSYNC:
    case SQLITE_IOERR_DIR_FSYNC:
      return ErrorCode::kUnsynced;
    default:
      break;
  }
  switch (extended & 0xff) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
      return ErrorCode::kStorageFull;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return ErrorCode::kCorrupt;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_INTERRUPT:
      return ErrorCode::kUnavailable;
    case SQLITE_CANTOPEN:
      return IsOutOfSpace(system_error) ? ErrorCode::kStorageFull : ErrorCode::kDenied;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return ErrorCode::kDenied;
    default:
      return ErrorCode::kInternal;
  }
}

}  // namespace

Error ErrorOf(sqlite3* db, int code, std::string_view doing) {
  const int extended = db == nullptr ? code : sqlite3_extended_errcode(db);
  const int system_error = db == nullptr ? 0 : sqlite3_system_errno(db);
  // The first statement finds out that a file is not a database, whatever the statement was for.
  std::string message(code == SQLITE_NOTADB ? "reading the database" : doing);
  message += ": ";
  message += db == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(db);
  if (system_error != 0) message += std::string(" (") + std::strerror(system_error) + ")";
  return {CodeOf(extended, system_error), std::move(message)};
}

bool Rows::Next() {
  if (!status_.ok()) return false;
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE)
    status_ = ErrorOf(sqlite3_db_handle(statement_), code, "reading the database");
  return false;
}

bool Rows::Null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

bool Rows::IsInteger(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_INTEGER;
}

bool Rows::IsText(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_TEXT;
}

int64_t Rows::Integer(int column) const { return sqlite3_column_int64(statement_, column); }

double Rows::Real(int column) const { return sqlite3_column_double(statement_, column); }

std::string_view Rows::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (text == nullptr) return {};
  return {text, static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

std::string_view Rows::Bytes(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

std::optional<std::string> Rows::OptionalText(int column) const {
  if (Null(column)) return std::nullopt;
  return std::string(Text(column));
}

Result<std::unique_ptr<Connection>> Connection::Open(const std::string& path, Mode mode,
                                                     int busy_timeout_ms) {
  int flags =
      mode == Mode::kReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  if (mode == Mode::kTemporary) flags |= SQLITE_OPEN_URI;
  sqlite3* db = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &db, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<Connection> connection(new Connection(db));
  if (code != SQLITE_OK) return ErrorOf(db, code, "opening " + path);
  sqlite3_extended_result_codes(db, 1);
  sqlite3_busy_timeout(db, busy_timeout_ms);
  return connection;
}

Connection::~Connection() {
  for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(db_);
}

void Connection::SetTablePrefix(std::string prefix) {
  table_prefix_ = std::move(prefix);
  last_ = nullptr;
  std::erase_if(statements_, [](const auto& statement) {
    const bool names_tables = statement.first.find('@') != statement.first.npos;
    if (names_tables) sqlite3_finalize(statement.second);
    return names_tables;
  });
}

Status Connection::Execute(const std::string& sql) {
  const int code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return ErrorOf(db_, code, "writing the database");
  return {};
}

Rows Connection::QueryOnce(const std::string& sql, std::span<const Parameter> parameters) {
  sqlite3_stmt* statement = nullptr;
  const int code =
      sqlite3_prepare_v2(db_, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK) return Rows(ErrorOf(db_, code, "using the database"));
  int place = 0;
  for (const Parameter& parameter : parameters) {
    ++place;
    std::visit([&](const auto& value) { Bind(statement, place, value, SQLITE_TRANSIENT); },
               parameter);
  }
  return Rows(statement, /*once=*/true);
}

Result<int64_t> Connection::Number(std::string_view sql) {
  Rows rows = Query(sql);
  const int64_t number = rows.Next() ? rows.Integer(0) : 0;
  if (!rows.status().ok()) return rows.status().error();
  return number;
}

Result<sqlite3_stmt*> Connection::Prepare(std::string_view sql) {
  if (last_ == nullptr || last_->first != sql) {
    key_.assign(sql);
    const auto known = statements_.find(key_);
    last_ = known == statements_.end() ? nullptr : &*known;
  }
  if (last_ != nullptr) {
    ATTUNE_CHECK(sqlite3_stmt_busy(last_->second) == 0);
    return last_->second;
  }
  std::string filled(sql);
  for (size_t at = filled.find('@'); at != filled.npos; at = filled.find('@', at))
    filled.replace(at, 1, table_prefix_);
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(db_, filled.data(), static_cast<int>(filled.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return ErrorOf(db_, code, "using the database");
  statements_.emplace(key_, statement);
  return statement;
}

Status Connection::Finish(sqlite3_stmt* statement) {
  int code = sqlite3_step(statement);
  while (code == SQLITE_ROW) code = sqlite3_step(statement);
  Status status;
  if (code != SQLITE_DONE) status = ErrorOf(db_, code, "writing the database");
  sqlite3_reset(statement);
  return status;
}

TimeLimit::TimeLimit(Connection& connection, std::chrono::steady_clock::duration limit)
    : connection_(connection), deadline_(std::chrono::steady_clock::now() + limit) {
  // The operations of SQLite's virtual machine between two checks; they take about 1 ms.
  constexpr int kOperations = 10'000;
  sqlite3_progress_handler(connection_.handle(), kOperations, &TimeLimit::Check, this);
}

TimeLimit::~TimeLimit() { sqlite3_progress_handler(connection_.handle(), 0, nullptr, nullptr); }

int TimeLimit::Check(void* self) {
  auto& limit = *static_cast<TimeLimit*>(self);
  limit.exceeded_ = std::chrono::steady_clock::now() >= limit.deadline_;
  return limit.exceeded_ ? 1 : 0;
}

Transaction::Transaction(Connection& connection, Kind kind) : connection_(connection) {
  status_ = connection_.Run(kind == Kind::kWrite ? "BEGIN IMMEDIATE" : "BEGIN");
}

Transaction::~Transaction() {
  // After some errors, such as a full disk, SQLite has already rolled back.
  if (connection_.in_transaction()) static_cast<void>(connection_.Run("ROLLBACK"));
}

Status Transaction::Try(const std::function<void()>& part) {
  Run("SAVEPOINT part");
  if (!status_.ok()) return status_;
  part();
  if (status_.ok()) {
    Run("RELEASE part");
    return status_;
  }
  // Errors such as a full disk end the whole transaction, and with it the savepoint.
  const Status failed = std::exchange(status_, Status());
  Run("ROLLBACK TO part");
  Run("RELEASE part");
  return failed;
}

Status Transaction::Commit() {
  if (!status_.ok()) return status_;
  Run("COMMIT");
  // If a commit fails for another reason than space, the disk may already contain its commit
  // record.
  sqlite3* const db = connection_.handle();
  if (!status_.ok() && (sqlite3_errcode(db) & 0xff) == SQLITE_IOERR &&
      !IsOutOfSpace(sqlite3_system_errno(db)))
    status_ = Error{ErrorCode::kUnsynced, status_.error().message};
  return status_;
}

}  // namespace attune::server::sqlite
