#include "server/store/event_log.h"

#include <limits>

#include "base/result.h"
#include "server/store/columns.h"
#include "server/store/erased_events.h"
#include "server/store/event_codec.h"

namespace attune::server {
namespace {

std::optional<SweepId> SweepIn(const sqlite::Rows& rows) {
  if (rows.Null(1)) return std::nullopt;
  return SweepId(static_cast<uint64_t>(rows.Integer(1)));
}

}  // namespace

std::string IsOfKinds(std::initializer_list<std::string_view> kinds) {
  std::string list;
  for (const std::string_view kind : kinds)
    list += (list.empty() ? "'" : ", '") + std::string(kind) + "'";
  return "kind IN (" + list + ")";
}

void AppendRow(sqlite::Transaction& transaction, const Event& event) {
  const EncodedFact encoded = Encode(event.fact);
  std::optional<uint64_t> sweep;
  std::optional<uint32_t> trial;
  if (encoded.sweep) sweep = encoded.sweep->value;
  if (encoded.trial) trial = encoded.trial->value;
  std::optional<std::string_view> actor;
  if (event.actor != kService) actor = event.actor;
  transaction.Run(
      "INSERT INTO events (seq, sweep, trial, time, kind, version, payload, actor)"
      " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
      event.seq.value, sweep, trial, event.time.us, encoded.kind, encoded.version, encoded.payload,
      actor);
}

Result<Event> EventOf(const sqlite::Rows& rows) {
  StoredFact stored{.kind = rows.Text(4), .version = rows.Integer(5), .payload = rows.Text(6)};
  stored.sweep = SweepIn(rows);
  if (!rows.Null(2)) stored.trial = TrialNumberAt(rows, 2);
  auto fact = Decode(stored);
  const EventSeq seq(static_cast<uint64_t>(rows.Integer(0)));
  if (!fact.ok())
    return Error{fact.error().code,
                 "event " + std::to_string(seq.value) + ": " + fact.error().message};
  return Event{.seq = seq, .time = Time{rows.Integer(3)}, .fact = std::move(fact).value()};
}

Result<Event> EventWithActorOf(const sqlite::Rows& rows) {
  auto event = EventOf(rows);
  if (event.ok() && !rows.Null(7)) event->actor = rows.Text(7);
  return event;
}

Result<Report> ReportAt(sqlite::Transaction& transaction, EventSeq seq) {
  sqlite::Rows rows = transaction.connection().Query(
      "SELECT seq, sweep, trial, time, kind, version, payload FROM events WHERE seq = ?",
      seq.value);
  if (!rows.Next()) {
    if (!rows.status().ok()) return rows.status().error();
    return Error{ErrorCode::kInternal,
                 "report " + std::to_string(seq.value) + " is not in the log"};
  }
  auto event = EventOf(rows);
  if (!event.ok()) return event.error();
  return std::move(std::get<TrialReported>(event->fact).report);
}

Status ReadLog(sqlite::Connection& connection, EventSeq after,
               const std::function<void(const Event&)>& visit) {
  return ReadLog(connection, after, EventSeq(std::numeric_limits<int64_t>::max()), visit);
}

Status ReadLog(sqlite::Connection& connection, EventSeq after, EventSeq last,
               const std::function<void(const Event&)>& visit) {
  sqlite::Rows rows = connection.Query(
      "SELECT seq, sweep, trial, time, kind, version, payload, actor FROM events"
      " WHERE seq > ? AND seq <= ? ORDER BY seq",
      after.value, last.value);
  if (!rows.Next()) return rows.status();
  auto erased = ErasedEvents::Read(connection);
  if (!erased.ok()) return erased.error();
  EventSeq before = after;
  do {
    const EventSeq seq(static_cast<uint64_t>(rows.Integer(0)));
    if (Status whole = erased->CheckGap(before, seq); !whole.ok()) return whole;
    before = seq;
    if (erased->Includes(SweepIn(rows), seq)) continue;
    const auto event = EventWithActorOf(rows);
    if (!event.ok()) return event.error();
    visit(*event);
  } while (rows.Next());
  return rows.status();
}

}  // namespace attune::server
