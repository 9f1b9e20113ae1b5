#pragma once

#include <sqlite3.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include "base/result.h"

// A thin wrapper of SQLite: ownership, Result for its codes, and cached prepared statements.
namespace attune::server::sqlite {

// Converts an error code of SQLite. `doing` describes the failed operation in the message.
Error ErrorOf(sqlite3* db, int code, std::string_view doing);

// A parameter of type BLOB.
struct Blob {
  std::string_view bytes;
};

// A parameter of Connection::QueryOnce.
using Parameter = std::variant<int64_t, double, std::string>;

// The rows of one query, or the error of preparing it. During its lifetime the same statement must
// not run again.
class Rows {
 public:
  // `once`: the rows own the statement.
  explicit Rows(sqlite3_stmt* statement, bool once = false) : statement_(statement), once_(once) {}
  explicit Rows(Error error) : statement_(nullptr), status_(std::move(error)) {}
  ~Rows() { once_ ? sqlite3_finalize(statement_) : sqlite3_reset(statement_); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  bool Next();  // false after the last row or an error; see status()
  const Status& status() const { return status_; }

  // Columns of the current row, from 0. Text stays valid until the next Next().
  bool Null(int column) const;
  bool IsInteger(int column) const;
  bool IsText(int column) const;
  int64_t Integer(int column) const;
  double Real(int column) const;
  std::string_view Text(int column) const;  // empty for NULL
  std::string_view Bytes(int column) const;
  std::optional<std::string> OptionalText(int column) const;

 private:
  sqlite3_stmt* statement_;
  bool once_ = false;
  Status status_;
};

// A connection. Only one thread may use it at a time.
class Connection {
 public:
  enum class Mode {
    kReadWriteCreate,
    kReadOnly,
    kTemporary,  // a nameless database that is deleted when closed; it attaches others by URIs
  };

  // `busy_timeout_ms`: how long to wait for another process that holds a lock.
  static Result<std::unique_ptr<Connection>> Open(const std::string& path, Mode mode,
                                                  int busy_timeout_ms);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Runs statements without parameters or rows, separated by semicolons. They are not cached.
  Status Execute(const std::string& sql);

  // Sets the text that replaces `@` in later statements; empty at first.
  void SetTablePrefix(std::string prefix);

  // Runs one statement with its parameters in order. It is prepared once and cached. Parameters are
  // text, integers, reals (NaN becomes NULL), Blob, std::nullopt, and optionals of these.
  template <class... Args>
  Status Run(std::string_view sql, const Args&... args) {
    Result<sqlite3_stmt*> statement = Prepare(sql);
    if (!statement.ok()) return statement.error();
    int place = 0;
    (Bind(*statement, ++place, args, SQLITE_STATIC), ...);
    return Finish(*statement);
  }

  // Like Run, for a statement with rows.
  template <class... Args>
  Rows Query(std::string_view sql, const Args&... args) {
    Result<sqlite3_stmt*> statement = Prepare(sql);
    if (!statement.ok()) return Rows(statement.error());
    int place = 0;
    (Bind(*statement, ++place, args, SQLITE_TRANSIENT), ...);
    return Rows(*statement);
  }

  // Like Query, for a statement that is built for one request. It is not cached. Parameters that
  // the statement does not use are ignored.
  Rows QueryOnce(const std::string& sql, std::span<const Parameter> parameters);

  // The single number of a query's result; 0 for NULL or no row.
  Result<int64_t> Number(std::string_view sql);

  bool in_transaction() const { return sqlite3_get_autocommit(db_) == 0; }
  sqlite3* handle() const { return db_; }

 private:
  explicit Connection(sqlite3* db) : db_(db) {}

  Result<sqlite3_stmt*> Prepare(std::string_view sql);
  Status Finish(sqlite3_stmt* statement);

  // `lifetime`: SQLITE_STATIC if the text outlives the run of the statement.
  using Lifetime = sqlite3_destructor_type;
  static void Bind(sqlite3_stmt* statement, int place, std::integral auto value, Lifetime) {
    sqlite3_bind_int64(statement, place, static_cast<sqlite3_int64>(value));
  }
  static void Bind(sqlite3_stmt* statement, int place, double value, Lifetime) {
    sqlite3_bind_double(statement, place, value);
  }
  static void Bind(sqlite3_stmt* statement, int place, std::string_view text, Lifetime lifetime) {
    // SQLite would bind a null pointer as NULL
    const char* data = text.data() == nullptr ? "" : text.data();
    sqlite3_bind_text64(statement, place, data, text.size(), lifetime, SQLITE_UTF8);
  }
  static void Bind(sqlite3_stmt* statement, int place, Blob blob, Lifetime lifetime) {
    const char* data = blob.bytes.data() == nullptr ? "" : blob.bytes.data();
    sqlite3_bind_blob64(statement, place, data, blob.bytes.size(), lifetime);
  }
  static void Bind(sqlite3_stmt* statement, int place, std::nullopt_t, Lifetime) {
    sqlite3_bind_null(statement, place);
  }
  template <class T>
  static void Bind(sqlite3_stmt* statement, int place, const std::optional<T>& value,
                   Lifetime lifetime) {
    if (value) {
      Bind(statement, place, *value, lifetime);
    } else {
      Bind(statement, place, std::nullopt, lifetime);
    }
  }

  sqlite3* db_;
  using Statements = std::unordered_map<std::string, sqlite3_stmt*>;
  Statements statements_;
  // the last used statement, because rows are often written in series
  const Statements::value_type* last_ = nullptr;
  std::string key_;  // reused, so that a look-up does not allocate
  std::string table_prefix_;
};

// Once `limit` has passed since its construction, interrupts the statements of a connection: they
// fail with kUnavailable. The connection must outlive it. A connection has at most one.
class TimeLimit {
 public:
  TimeLimit(Connection& connection, std::chrono::steady_clock::duration limit);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  bool exceeded() const { return exceeded_; }

 private:
  static int Check(void* self);

  Connection& connection_;
  const std::chrono::steady_clock::time_point deadline_;
  bool exceeded_ = false;
};

// A transaction. After its first error it runs nothing more. Without a commit it is rolled back.
class Transaction {
 public:
  enum class Kind { kRead, kWrite };

  Transaction(Connection& connection, Kind kind);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  template <class... Args>
  void Run(std::string_view sql, const Args&... args) {
    if (status_.ok()) status_ = connection_.Run(sql, args...);
  }
  void Execute(const std::string& sql) {
    if (status_.ok()) status_ = connection_.Execute(sql);
  }
  void Fail(Error error) {
    if (status_.ok()) status_ = std::move(error);
  }

  // Runs a part of the transaction. If the part fails, it is undone and its error is returned. The
  // transaction continues, unless status() is an error.
  Status Try(const std::function<void()>& part);

  // Commits, and returns the first error of the whole transaction, including the commit.
  Status Commit();

  const Status& status() const { return status_; }
  Connection& connection() { return connection_; }

 private:
  Connection& connection_;
  Status status_;
};

}  // namespace attune::server::sqlite
