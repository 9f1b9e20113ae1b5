#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/log/event.h"
#include "server/store/sqlite.h"

// Reads and writes rows of the table `events`.
namespace attune::server {

// A condition of SQL that is true for events of these kinds. They must be the constants of
// `core/log`, because they are not escaped.
std::string IsOfKinds(std::initializer_list<std::string_view> kinds);

void AppendRow(sqlite::Transaction& transaction, const Event& event);

// The event of a query's current row. The columns must be seq, sweep, trial, time, kind, version,
// payload.
Result<Event> EventOf(const sqlite::Rows& rows);
// the same with the column `actor` at the end
Result<Event> EventWithActorOf(const sqlite::Rows& rows);

// The report of this event.
Result<Report> ReportAt(sqlite::Transaction& transaction, EventSeq seq);

// Calls `visit` in order with every event of seq > `after` that was not erased, until the first
// error. kCorrupt if another event is missing.
Status ReadLog(sqlite::Connection& connection, EventSeq after,
               const std::function<void(const Event&)>& visit);
Status ReadLog(sqlite::Connection& connection, EventSeq after, EventSeq last,
               const std::function<void(const Event&)>& visit);

}  // namespace attune::server
