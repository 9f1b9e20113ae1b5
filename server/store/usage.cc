#include "server/store/usage.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "json/parse.h"
#include "server/store/columns.h"
#include "server/store/format_time.h"
#include "server/store/json.h"
#include "server/store/queries.h"
#include "server/store/row_json.h"

namespace attune::server {
namespace {

using TrialPlaces = std::map<TrialNumber, size_t>;

Time TimeColumn(const sqlite::Rows& rows, int column) {
  return ParseTime(rows.Text(column)).value_or(Time());
}

// The attempts right after a clone: the first to begin from that checkpoint of another trial.
Result<std::set<std::pair<TrialNumber, uint32_t>>> ReadClonedAttempts(
    sqlite::Connection& connection, SweepId sweep) {
  std::set<std::pair<TrialNumber, uint32_t>> cloned;
  sqlite::Rows rows = connection.Query(
      "SELECT d.trial, d.attempt FROM clones AS c JOIN decisions AS d ON d.seq = c.seq"
      " WHERE c.sweep = ?",
      sweep.value);
  while (rows.Next())
    cloned.emplace(TrialNumberAt(rows, 0), static_cast<uint32_t>(rows.Integer(1)) + 1);
  if (!rows.status().ok()) return rows.status().error();
  return cloned;
}

Status ReadAttemptUses(sqlite::Connection& connection, SweepId sweep,
                       const std::set<std::pair<TrialNumber, uint32_t>>& cloned,
                       const TrialPlaces& places, std::vector<TrialUse>& uses) {
  sqlite::Rows rows = connection.Query(
      "SELECT a.trial, a.number, a.workers, a.gpus, a.decided, a.ended, a.outcome, a.resumed_from,"
      " ifnull(a.step, t.step), ifnull(a.seconds, t.seconds - t.seconds_before)"
      " FROM attempts AS a JOIN trials AS t ON t.sweep = a.sweep AND t.number = a.trial"
      " WHERE a.sweep = ? ORDER BY a.trial, a.number",
      sweep.value);
  while (rows.Next()) {
    const auto number = static_cast<uint32_t>(rows.Integer(1));
    const auto place = places.find(TrialNumberAt(rows, 0));
    if (place == places.end()) continue;
    const std::string_view outcome = rows.Text(6);
    AttemptUse use{.workers = static_cast<uint32_t>(rows.Integer(2)),
                   .gpus = rows.Real(3),
                   .begin = TimeColumn(rows, 4),
                   .broken = outcome == Name(Outcome::kFailed) || outcome == Name(Outcome::kLost),
                   .cloned = cloned.contains({place->first, number}),
                   .last_step = Step(rows.Integer(8)),
                   .seconds = Seconds(rows.Real(9))};
    if (!rows.Null(5)) use.end = TimeColumn(rows, 5);
    if (!rows.Null(7)) use.resumed_from = Step(rows.Integer(7));
    std::vector<AttemptUse>& attempts = uses[place->second].attempts;
    // Attempts have the numbers from 1 on without gaps.
    if (number != attempts.size() + 1) continue;
    attempts.push_back(std::move(use));
  }
  return rows.status();
}

// The cost depends on checkpoints only in trials with several attempts or a broken one.
Status ReadSavedSteps(sqlite::Connection& connection, SweepId sweep, const TrialPlaces& places,
                      std::vector<TrialUse>& uses) {
  sqlite::Rows rows = connection.Query(
      "SELECT c.trial, c.attempt, c.step, c.time FROM checkpoints AS c"
      " WHERE c.sweep = ?1 AND c.trial IN (SELECT trial FROM attempts WHERE sweep = ?1"
      "  AND (number > 1 OR outcome IN ('failed', 'lost')))"
      " ORDER BY c.trial, c.step, c.attempt",
      sweep.value);
  while (rows.Next()) {
    const auto place = places.find(TrialNumberAt(rows, 0));
    if (place == places.end()) continue;
    std::vector<AttemptUse>& attempts = uses[place->second].attempts;
    const auto attempt = static_cast<size_t>(rows.Integer(1));
    if (attempt == 0 || attempt > attempts.size()) continue;
    attempts[attempt - 1].checkpoints.push_back({Step(rows.Integer(2)), TimeColumn(rows, 3)});
  }
  return rows.status();
}

constexpr std::string_view kHeldColumns =
    "SELECT a.sweep, a.trial, a.number, s.name, a.outcome, a.decided, a.ended, a.ranks"
    " FROM attempts AS a CROSS JOIN sweeps AS s ON s.sweep = a.sweep";

Result<HeldRow> HeldOfRow(const sqlite::Rows& rows) {
  HeldRow held{
      .attempt = {{SweepId(static_cast<uint64_t>(rows.Integer(0))), TrialNumberAt(rows, 1)},
                  static_cast<uint32_t>(rows.Integer(2))},
      .sweep_name = std::string(rows.Text(3)),
      .outcome = std::string(rows.Text(4)),
      .begin = TimeColumn(rows, 5)};
  if (!rows.Null(6)) held.end = TimeColumn(rows, 6);
  const auto damage = FindDamage([&] {
    for (RankSlot& slot : RanksFromJson(ParseJsonOrThrow<Json>(rows.Text(7))))
      held.ranks.push_back({static_cast<int>(held.ranks.size()), std::move(slot)});
  });
  if (damage) return Error{ErrorCode::kCorrupt, ToString(held.attempt) + ": " + *damage};
  return held;
}

// Adds rows until the page is full.
Status AddHeld(sqlite::Rows rows, const std::string& executor, size_t limit, HeldPage& page) {
  while (rows.Next()) {
    auto held = HeldOfRow(rows);
    if (!held.ok()) return held.error();
    if (!executor.empty())
      std::erase_if(held->ranks,
                    [&](const HeldRank& rank) { return rank.slot.executor != executor; });
    if (held->ranks.empty()) continue;
    if (page.attempts.size() == limit) {
      page.more = true;
      return {};
    }
    page.attempts.push_back(std::move(held).value());
  }
  return rows.status();
}

}  // namespace

Result<std::vector<TrialUse>> ReadUses(sqlite::Connection& connection, SweepId sweep) {
  if (Status known = CheckSweep(connection, sweep); !known.ok()) return known.error();
  std::vector<TrialUse> uses;
  TrialPlaces places;
  {
    sqlite::Rows rows = connection.Query(
        "SELECT number, state, step FROM trials WHERE sweep = ? ORDER BY number", sweep.value);
    while (rows.Next()) {
      places.emplace_hint(places.end(), TrialNumberAt(rows, 0), uses.size());
      uses.push_back({.stopped = rows.Text(1) == Name(TrialState::kStopped),
                      .last_step = Step(rows.Integer(2))});
    }
    if (!rows.status().ok()) return rows.status().error();
  }
  const auto cloned = ReadClonedAttempts(connection, sweep);
  if (!cloned.ok()) return cloned.error();
  Status read = ReadAttemptUses(connection, sweep, *cloned, places, uses);
  if (read.ok()) read = ReadSavedSteps(connection, sweep, places, uses);
  if (!read.ok()) return read.error();
  return uses;
}

Result<HeldPage> ReadHeldSlots(sqlite::Connection& connection, Time since, Time until,
                               const std::string& executor, size_t limit) {
  HeldPage page;
  const std::string from = FormatTime(since), to = FormatTime(until);
  Status read = AddHeld(
      connection.Query(std::string(kHeldColumns) + " WHERE a.ended IS NULL AND a.decided < ?"
                                                   " ORDER BY a.decided DESC",
                       to),
      executor, limit, page);
  if (read.ok() && !page.more)
    read =
        AddHeld(connection.Query(std::string(kHeldColumns) + " WHERE a.ended > ? AND a.decided < ?"
                                                             " ORDER BY a.ended DESC",
                                 from, to),
                executor, limit, page);
  if (!read.ok()) return read.error();
  return page;
}

Result<std::vector<JoinRow>> ReadJoins(sqlite::Connection& connection) {
  sqlite::Rows rows = connection.Query("SELECT name, joined, lost FROM executors ORDER BY name");
  std::vector<JoinRow> joins;
  while (rows.Next()) {
    joins.push_back({.executor = std::string(rows.Text(0)), .joined = TimeColumn(rows, 1)});
    if (!rows.Null(2)) joins.back().lost = TimeColumn(rows, 2);
  }
  if (!rows.status().ok()) return rows.status().error();
  return joins;
}

}  // namespace attune::server
