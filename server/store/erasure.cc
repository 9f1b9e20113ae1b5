#include "server/store/erasure.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/log/event.h"
#include "server/store/erased_events.h"
#include "server/store/tables/tables.h"

namespace attune::server {
namespace {

// The limits of one step. An event may be large; a row of a table is small.
constexpr int kEventsInStep = 64;
constexpr int kRowsInStep = 256;

struct ActiveErasure {
  SweepId sweep;
  EventSeq first;
  EventSeq last;
  EventSeq next;  // 0: rows of the tables must be erased first
};

EventSeq SeqIn(const sqlite::Rows& rows, int column) {
  return EventSeq(static_cast<uint64_t>(rows.Integer(column)));
}

std::optional<ActiveErasure> Next(sqlite::Transaction& transaction) {
  sqlite::Rows rows = transaction.connection().Query(
      "SELECT sweep, first, last, next FROM erasures WHERE begun ORDER BY sweep LIMIT 1");
  if (rows.Next())
    return ActiveErasure{.sweep = SweepId(static_cast<uint64_t>(rows.Integer(0))),
                         .first = SeqIn(rows, 1),
                         .last = SeqIn(rows, 2),
                         .next = SeqIn(rows, 3)};
  if (!rows.status().ok()) transaction.Fail(rows.status().error());
  return std::nullopt;
}

// Continues the erasure at `next`, or ends it if no event is left.
void ContinueAt(sqlite::Transaction& transaction, const ActiveErasure& erasure, EventSeq next) {
  if (next > erasure.last) {
    transaction.Run("DELETE FROM erasures WHERE sweep = ?", erasure.sweep.value);
  } else {
    transaction.Run("UPDATE erasures SET next = ? WHERE sweep = ?", next.value,
                    erasure.sweep.value);
  }
}

// Erases rows of the sweep from one table. Returns false if no table has any.
bool EraseRows(sqlite::Transaction& transaction, SweepId sweep) {
  for (const SweepTable& table : kSweepTables) {
    const std::string key(table.key);
    const std::string name(table.name);
    transaction.Run("DELETE FROM " + name + " WHERE (" + key + ") IN (SELECT " + key + " FROM " +
                        name + " WHERE sweep = ? LIMIT ?)",
                    sweep.value, kRowsInStep);
    if (!transaction.status().ok()) return false;
    if (sqlite3_changes(transaction.connection().handle()) > 0) return true;
  }
  return false;
}

std::vector<EventSeq> SeqsOf(sqlite::Transaction& transaction, SweepId sweep, EventSeq first,
                             EventSeq last) {
  std::vector<EventSeq> events;
  sqlite::Rows rows = transaction.connection().Query(
      "SELECT seq FROM events WHERE seq BETWEEN ? AND ? AND sweep = ? ORDER BY seq LIMIT ?",
      first.value, last.value, sweep.value, kEventsInStep);
  while (rows.Next()) events.push_back(SeqIn(rows, 0));
  if (!rows.status().ok()) transaction.Fail(rows.status().error());
  return events;
}

ErasedBits BitsOf(sqlite::Transaction& transaction, uint64_t range) {
  sqlite::Rows rows =
      transaction.connection().Query("SELECT bits FROM erased WHERE first = ?", range);
  if (rows.Next()) return ErasedBits(rows.Bytes(0));
  if (!rows.status().ok()) transaction.Fail(rows.status().error());
  return {};
}

void EraseEvents(sqlite::Transaction& transaction, const ActiveErasure& erasure) {
  const uint64_t range = RangeOf(erasure.next);
  const EventSeq range_last(range + kErasedRange - 1);
  const EventSeq last = std::min(erasure.last, range_last);
  const auto events = SeqsOf(transaction, erasure.sweep, erasure.next, last);
  if (!events.empty()) {
    ErasedBits bits = BitsOf(transaction, range);
    for (const EventSeq seq : events) {
      transaction.Run("DELETE FROM events WHERE seq = ?", seq.value);
      bits.Set(seq);
    }
    transaction.Run("INSERT OR REPLACE INTO erased (first, last, bits) VALUES (?, ?, ?)", range,
                    range_last.value, sqlite::Blob{bits.bytes()});
  }
  const bool more = events.size() == kEventsInStep;
  ContinueAt(transaction, erasure, EventSeq((more ? events.back() : last).value + 1));
}

// The event that created the sweep, according to the tables and confirmed by the log; 1: unknown.
EventSeq CreationSeq(sqlite::Connection& connection, SweepId sweep) {
  const std::string id = std::to_string(sweep.value);
  const auto created = connection.Number(
      "SELECT seq FROM events WHERE seq = (SELECT seq FROM sweeps WHERE sweep = " + id +
      ") AND sweep = " + id + " AND kind = '" + std::string(SweepCreated::kRow.info.kind) + "'");
  return EventSeq(created.ok() && *created > 0 ? static_cast<uint64_t>(*created) : 1);
}

}  // namespace

Result<Erasures> ReadErasures(sqlite::Connection& connection) {
  Erasures erasures;
  sqlite::Rows rows = connection.Query("SELECT DISTINCT begun FROM erasures");
  while (rows.Next()) (rows.Integer(0) != 0 ? erasures.begun : erasures.waiting) = true;
  if (!rows.status().ok()) return rows.status().error();
  return erasures;
}

void AddErasure(sqlite::Transaction& transaction, SweepId sweep, EventSeq deleted) {
  if (!transaction.status().ok()) return;
  const EventSeq first = CreationSeq(transaction.connection(), sweep);
  transaction.Run("INSERT OR REPLACE INTO erasures (sweep, first, last) VALUES (?, ?, ?)",
                  sweep.value, first.value, deleted.value - 1);
}

void BeginErasures(sqlite::Transaction& transaction, EventSeq seq) {
  transaction.Run(
      "DELETE FROM snapshots WHERE seq <="
      " (SELECT max(last) FROM erasures WHERE NOT begun AND last < ?)",
      seq.value);
  transaction.Run("UPDATE erasures SET begun = 1 WHERE NOT begun AND last < ?", seq.value);
}

bool EraseSome(sqlite::Transaction& transaction, const std::function<bool()>& is_over) {
  do {
    const auto erasure = Next(transaction);
    if (!erasure) return false;
    if (erasure->next.value > 0) {
      EraseEvents(transaction, *erasure);
    } else if (!EraseRows(transaction, erasure->sweep)) {
      ContinueAt(transaction, *erasure, erasure->first);
    }
  } while (transaction.status().ok() && !is_over());
  return true;
}

}  // namespace attune::server
