#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "core/log/event.h"
#include "server/store/sqlite.h"

// The table `events`, row by row.
namespace attune::server {

void AppendRow(sqlite::Transaction& transaction, const Event& event);

// The row a query stands at; its columns are seq, sweep, trial, time, kind, version, payload.
Result<Event> EventOf(const sqlite::Rows& rows);
Result<Event> EventWithActorOf(const sqlite::Rows& rows);  // and `actor` after these

// The report that this event is.
Result<Report> ReportAt(sqlite::Transaction& transaction, EventSeq seq);

// Every event of seq > after that was not erased, in order, until the first error. kCorrupt if
// another one is missing.
Status ReadLog(sqlite::Connection& connection, EventSeq after,
               const std::function<void(const Event&)>& visit);
Status ReadLog(sqlite::Connection& connection, EventSeq after, EventSeq last,
               const std::function<void(const Event&)>& visit);

}  // namespace attune::server
