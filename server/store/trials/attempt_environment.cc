#include "server/store/trials/attempt_environment.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/store/format_time.h"
#include "server/store/queries.h"
#include "server/store/tables/tables.h"

namespace attune::server {
namespace {

// The last time at which a record counts as that of the attempt.
Time RecordedUntil(const AttemptRow& attempt) {
  constexpr Time kUnknown{0};
  const int64_t within_us = std::chrono::microseconds(kRecordedWithin).count();
  Time until = ParseTime(attempt.started.value_or(attempt.decided)).value_or(kUnknown);
  until.us += within_us;
  if (attempt.ended) until = std::min(until, ParseTime(*attempt.ended).value_or(until));
  return until;
}

struct RecordName {
  uint64_t seq = 0;
  Time recorded;
};

// Reads only the names of records, because records are long.
Result<std::optional<RecordName>> FindRecord(sqlite::Connection& connection, SweepId sweep,
                                             const std::string& executor, Time until) {
  sqlite::Rows rows = connection.Query(
      "SELECT environments.seq, " + ShownTimeSql("events") +
          " FROM environments JOIN events ON events.seq = environments.seq"
          " WHERE environments.sweep = ? AND environments.executor = ? ORDER BY environments.seq",
      sweep.value, executor);
  std::optional<RecordName> found;
  while (rows.Next()) {
    const RecordName each{static_cast<uint64_t>(rows.Integer(0)), Time{rows.Integer(1)}};
    if (found && each.recorded > until) break;
    found = each;
  }
  if (!rows.status().ok()) return rows.status().error();
  return found;
}

}  // namespace

Result<AttemptEnvironment> ReadEnvironment(sqlite::Connection& connection, const TrialId& id,
                                           std::optional<uint32_t> attempt) {
  const auto trial = ReadTrial(connection, id);
  if (!trial.ok()) return trial.error();
  const uint32_t number = attempt.value_or(trial->attempts);
  std::vector<AttemptRow> attempts;
  if (Status read = ReadAttempts(connection, id, number, 1, attempts); !read.ok())
    return read.error();
  if (attempts.empty() || attempts.front().number != number) {
    return Error{ErrorCode::kNotFound,
                 trial->attempts == 0
                     ? "trial " + ToString(id) + " has not run yet"
                     : "trial " + ToString(id) + " has no attempt " + std::to_string(number) +
                           "; its newest attempt is " + std::to_string(trial->attempts)};
  }
  AttemptEnvironment environment{.attempt = number};
  std::set<std::string> executors;
  for (const RankSlot& slot : attempts.front().ranks) executors.insert(slot.executor);
  for (const std::string& executor : executors) {
    const auto name = FindRecord(connection, id.sweep, executor, RecordedUntil(attempts.front()));
    if (!name.ok()) return name.error();
    if (!*name) continue;
    sqlite::Rows rows = connection.Query(
        "SELECT record FROM environments WHERE sweep = ? AND executor = ? AND seq = ?",
        id.sweep.value, executor, (*name)->seq);
    if (rows.Next())
      environment.executors.push_back(
          {executor, FormatTime((*name)->recorded), std::string(rows.Text(0))});
    if (!rows.status().ok()) return rows.status().error();
  }
  return environment;
}

}  // namespace attune::server
