#include "server/store/schema.h"

#include <array>

#include "base/result.h"
#include "server/store/projection.h"

namespace attune::server {
namespace {

// Each brings the log from the version of its index to the next. The tables for people need no
// migration: they are made anew from the log after every change of the schema.
constexpr std::array kMigrations = {
    // 1: the log.
    R"sql(
      CREATE TABLE events (
        seq     INTEGER PRIMARY KEY,
        sweep   INTEGER,
        trial   INTEGER,
        time    INTEGER NOT NULL,
        kind    TEXT    NOT NULL,
        version INTEGER NOT NULL,
        payload TEXT    NOT NULL
      );
      CREATE INDEX events_reports ON events (sweep, trial) WHERE kind = 'trial_reported';
    )sql",
    // 2: snapshots; reports are indexed by a table that is derived like the others.
    R"sql(
      DROP INDEX events_reports;
      CREATE TABLE snapshots (
        seq     INTEGER PRIMARY KEY,
        payload BLOB    NOT NULL
      );
    )sql",
    // 3: snapshots in parts, since a value of SQLite's ends at a gigabyte.
    R"sql(
      DROP TABLE snapshots;
      CREATE TABLE snapshots (
        seq     INTEGER NOT NULL,
        part    INTEGER NOT NULL,
        payload BLOB    NOT NULL,
        UNIQUE (seq, part)
      );
    )sql",
    // 4: who made an event happen; NULL: the service itself, or the log does not say.
    R"sql(
      ALTER TABLE events ADD COLUMN actor TEXT;
    )sql",
    // 5: what is left of ended sweeps, beside the snapshots that name it. `until`: the first
    // snapshot that does not.
    R"sql(
      CREATE TABLE ended_sweeps (
        sweep   INTEGER NOT NULL,
        mark    INTEGER NOT NULL,
        payload BLOB    NOT NULL,
        until   INTEGER,
        UNIQUE (sweep, mark)
      );
    )sql",
    // 6: nothing of the log; why trials have their configurations stands in the tables for people.
    "SELECT 1",
    // 7: likewise; what sweeps have taken of earlier ones.
    "SELECT 1",
    // 8: likewise; labels of executors, and which are drained.
    "SELECT 1",
    // 9: likewise; who has cloned whom.
    "SELECT 1",
    // 10: likewise; which executors are not well, or were set aside.
    "SELECT 1",
    // 11: likewise; by which policy a verdict was given.
    "SELECT 1",
    // 12: likewise; why trials were promoted.
    "SELECT 1",
    // 13: likewise; sweeps that are deleted.
    "SELECT 1",
    // 14: likewise; what trials log between reports.
    "SELECT 1",
};

Result<int64_t> Pragma(sqlite::Connection& connection, const std::string& name) {
  return connection.Number("PRAGMA " + name);
}

Error Newer(const std::string& path, int64_t version) {
  return {ErrorCode::kCorrupt,
          path + " has schema version " + std::to_string(version) +
              ", which is newer than the version " + std::to_string(SchemaVersion()) +
              " that this program knows: start the Attune that wrote it, or one released later, or "
              "choose another data folder"};
}

Error NotOurs(const std::string& path) {
  return {ErrorCode::kCorrupt, path +
                                   " is a database of another program, not Attune's: move it away "
                                   "or choose another data folder"};
}

}  // namespace

int64_t SchemaVersion() { return static_cast<int64_t>(kMigrations.size()); }

Status Migrate(sqlite::Connection& connection, const std::string& path,
               const OnProgress& progress) {
  sqlite::Transaction transaction(connection, sqlite::Transaction::Kind::kWrite);
  if (!transaction.status().ok()) return transaction.status();
  const auto application = Pragma(connection, "application_id");
  if (!application.ok()) return application.error();
  const auto version = Pragma(connection, "user_version");
  if (!version.ok()) return version.error();
  const auto tables = connection.Number("SELECT count(*) FROM sqlite_schema");
  if (!tables.ok()) return tables.error();

  const bool fresh = *application == 0 && *version == 0 && *tables == 0;
  if (!fresh && *application != kApplicationId) return NotOurs(path);
  if (*version > SchemaVersion()) return Newer(path, *version);
  if (*version == SchemaVersion()) return transaction.Commit();

  for (int64_t next = *version; next < SchemaVersion(); ++next)
    transaction.Execute(kMigrations[static_cast<size_t>(next)]);
  transaction.Execute("PRAGMA application_id = " + std::to_string(kApplicationId));
  transaction.Execute("PRAGMA user_version = " + std::to_string(SchemaVersion()));
  Projection().Rebuild(transaction, progress);
  return transaction.Commit();
}

}  // namespace attune::server
