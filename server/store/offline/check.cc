#include "server/store/offline/check.h"

#include <algorithm>
#include <span>

#include "base/result.h"
#include "core/brain/audit.h"
#include "server/store/event_log.h"
#include "server/store/offline/offline.h"
#include "server/store/tables/projection.h"
#include "server/store/tables/tables.h"

namespace attune::server {
namespace {

constexpr size_t kBatch = 4096;      // events
constexpr int kFaultsNamedMax = 10;  // the most faults that SQLite reports
const char* const kRestore = "; restore the database from a backup";

// Counts rows. Returns 0 and adds a fault if that fails.
int64_t Count(sqlite::Connection& connection, const std::string& sql, Finding& finding) {
  const auto count = connection.Number(sql);
  if (count.ok()) return *count;
  if (!finding.fault) finding.fault = count.error().message + kRestore;
  return 0;
}

std::string Events(uint64_t count) { return std::to_string(count) + " events"; }

Finding CheckFile(sqlite::Connection& connection) {
  Finding finding{.what = "file"};
  std::string faults;
  sqlite::Rows rows = connection.Query("SELECT * FROM pragma_integrity_check(" +
                                       std::to_string(kFaultsNamedMax) + ", 'log')");
  while (rows.Next()) {
    if (rows.Text(0) != "ok") faults.append(faults.empty() ? "" : "; ").append(rows.Text(0));
  }
  if (!rows.status().ok()) faults = rows.status().error().message;
  if (!faults.empty()) finding.fault = faults + kRestore;
  finding.seen = std::to_string(Count(connection, "PRAGMA log.page_count", finding)) + " pages";
  return finding;
}

// Reads and checks the log once, and builds the tables again in the connection's temporary
// database.
Finding CheckLog(sqlite::Transaction& transaction) {
  Finding finding{.what = "log"};
  Projection projection;
  std::vector<Event> batch;
  uint64_t count = 0;
  EventSeq applied{0};
  const auto apply = [&](EventSeq last) {
    projection.Apply(transaction, batch, applied, last, Projection::ErrorMode::kSkip);
    applied = last;
    batch.clear();
  };
  const Status read = ReadLog(transaction.connection(), EventSeq(0), [&](const Event& event) {
    ++count;
    batch.push_back(event);
    if (batch.size() == kBatch) apply(event.seq);
  });
  if (!batch.empty()) apply(batch.back().seq);
  projection.WriteAll(transaction, applied);
  finding.seen = Events(count);
  if (!read.ok()) finding.fault = read.error().message;
  return finding;
}

// The tables of a running server may not contain its newest reports yet. The columns that reports
// change are then not compared.
const char* const kTrialsButReports =
    "sweep, number, state, config, origin, rationale, reason, created, ended, not_before, attempts,"
    " milestone, checkpoint, note, tags, patch, code";

// Rows of a deleted sweep are not compared, because a server may be erasing them.
std::string ComparedRows(const std::string& table) {
  const bool has_sweeps =
      std::ranges::any_of(kSweepTables, [&](const SweepTable& each) { return table == each.name; });
  return has_sweeps ? " WHERE sweep NOT IN (SELECT sweep FROM log.erasures)" : "";
}

// The number of rows that only one of the two databases has.
Result<int64_t> Differences(sqlite::Connection& connection, const std::string& table) {
  const auto behind = connection.Number("SELECT count(*) FROM log.behind");
  if (!behind.ok()) return behind;
  const std::string columns = table == "trials" && *behind > 0 ? kTrialsButReports : "*";
  const std::string ours = "SELECT " + columns + " FROM main." + table + ComparedRows(table);
  const std::string theirs = "SELECT " + columns + " FROM log." + table + ComparedRows(table);
  const auto missing =
      connection.Number("SELECT count(*) FROM (" + ours + " EXCEPT " + theirs + ")");
  if (!missing.ok()) return missing;
  const auto added = connection.Number("SELECT count(*) FROM (" + theirs + " EXCEPT " + ours + ")");
  if (!added.ok()) return added;
  return *missing + *added;
}

// Checks for events that the tables could not take.
Finding CheckUnshown(sqlite::Connection& connection) {
  Finding finding{.what = "tables"};
  finding.seen = std::to_string(Count(connection, "SELECT count(*) FROM log.unshown", finding)) +
                 " events left out";
  sqlite::Rows rows = connection.Query("SELECT seq, reason FROM log.unshown ORDER BY seq LIMIT 1");
  if (rows.Next())
    finding.fault = "the tables do not contain event " + std::to_string(rows.Integer(0)) + " (" +
                    std::string(rows.Text(1)) +
                    "); restart the server to rebuild the tables; if that does not help, install a "
                    "newer version";
  if (!rows.status().ok()) finding.fault = rows.status().error().message + kRestore;
  return finding;
}

Finding CheckTable(sqlite::Connection& connection, const std::string& table) {
  Finding finding{.what = "table " + table};
  finding.seen =
      std::to_string(Count(connection, "SELECT count(*) FROM log." + table, finding)) + " rows";
  const auto differences = Differences(connection, table);
  if (!differences.ok()) {
    finding.fault = differences.error().message + kRestore;
  } else if (*differences > 0) {
    finding.fault = std::to_string(*differences) +
                    " rows differ from the log, so another program has written to the database:"
                    " restore it from a backup";
  }
  return finding;
}

}  // namespace

Result<std::vector<Finding>> CheckDatabase(const std::string& path) {
  auto connection = OpenOffline(path);
  if (!connection.ok()) return connection.error();
  std::vector<Finding> findings;
  findings.push_back(CheckFile(**connection));
  sqlite::Transaction transaction(**connection, sqlite::Transaction::Kind::kRead);
  transaction.Execute(TablesSql());
  findings.push_back(CheckLog(transaction));
  if (!transaction.status().ok()) {
    findings.push_back({"tables", "not compared", transaction.status().error().message});
    return findings;
  }
  findings.push_back(CheckUnshown(**connection));
  for (const char* table : kDerivedTables) findings.push_back(CheckTable(**connection, table));
  return findings;
}

Result<Finding> CheckDecisions(const std::string& path, const Algorithms& algorithms) {
  auto connection = OpenOffline(path);
  if (!connection.ok()) return connection.error();
  Auditor auditor(algorithms);
  std::optional<std::string> fault;
  const Status read = ReadLog(**connection, EventSeq(0), [&](const Event& event) {
    if (fault) return;
    if (auto differs = auditor.Next(event))
      fault = "event " + std::to_string(event.seq.value) + ": " + *differs;
  });
  if (!read.ok() && !fault) fault = read.error().message;
  return Finding{"decisions",
                 std::to_string(auditor.proposals()) + " proposals, " +
                     std::to_string(auditor.verdicts()) + " verdicts",
                 std::move(fault)};
}

}  // namespace attune::server
