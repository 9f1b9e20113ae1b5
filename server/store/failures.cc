#include "server/store/failures.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "core/analysis/failure_pattern.h"
#include "server/store/columns.h"

namespace attune::server {
namespace {

// The failed and lost attempts, by trial and number, with the first line of their messages.
constexpr const char* kFailedAttempts =
    "SELECT trial, number, outcome, failure_kind, failure_rank, executor, ifnull(ended, decided),"
    " substr(failure, 1, min(?2, instr(failure || char(10), char(10)) - 1)) FROM attempts"
    " WHERE sweep = ?1 AND outcome IN ('failed', 'lost') ORDER BY trial, number";

FailedAttempt FailedAttemptOfRow(SweepId sweep, const sqlite::Rows& rows) {
  FailedAttempt attempt{
      .attempt = {TrialId(sweep, TrialNumberAt(rows, 0)), static_cast<uint32_t>(rows.Integer(1))},
      .rank = std::nullopt,
      .executor = std::string(rows.Text(5)),
      .kind = std::string(rows.Text(2) == "lost" ? rows.Text(2) : rows.Text(3)),
      .failure = std::string(rows.Text(7)),
      .time = std::string(rows.Text(6))};
  if (!rows.Null(4)) attempt.rank = rows.Integer(4);
  return attempt;
}

// Two attempts may end at the same time.
bool IsEarlier(const FailedAttempt& one, const FailedAttempt& other) {
  return std::tie(one.time, one.attempt) < std::tie(other.time, other.attempt);
}

// A group to which attempts are added, by trial.
struct OpenGroup {
  FailureGroup group;
  std::optional<TrialNumber> last_trial = {};
};

void Add(const FailedAttempt& attempt, OpenGroup& open) {
  FailureGroup& group = open.group;
  if (group.attempts == 0 || IsEarlier(attempt, group.first)) group.first = attempt;
  group.last = std::max(group.last, attempt.time);
  ++group.attempts;
  const TrialNumber trial = attempt.attempt.trial.number;
  if (open.last_trial == trial) return;
  open.last_trial = trial;
  ++group.trials;
  if (group.some_trials.size() < kFailureTrialsMax) group.some_trials.push_back(trial);
}

// The message with the end of the log.
Status ReadWhole(sqlite::Connection& connection, FailedAttempt& attempt) {
  sqlite::Rows rows =
      connection.Query("SELECT failure FROM attempts WHERE sweep = ? AND trial = ? AND number = ?",
                       attempt.attempt.trial.sweep.value, attempt.attempt.trial.number.value,
                       attempt.attempt.number);
  if (rows.Next()) attempt.failure = std::string(rows.Text(0));
  return rows.status();
}

}  // namespace

Result<Failures> ReadFailures(sqlite::Connection& connection, SweepId sweep) {
  Failures failures;
  std::map<std::pair<std::string, std::string>, OpenGroup> groups;
  {
    sqlite::Rows rows = connection.Query(kFailedAttempts, sweep.value, kFailureMessageBytes);
    std::optional<TrialNumber> trial;
    while (rows.Next()) {
      const FailedAttempt attempt = FailedAttemptOfRow(sweep, rows);
      ++failures.attempts;
      if (trial != attempt.attempt.trial.number) ++failures.trials;
      trial = attempt.attempt.trial.number;
      if (!failures.first || IsEarlier(attempt, *failures.first)) failures.first = attempt;
      std::pair key(attempt.kind, PatternOf(attempt.failure));
      auto group = groups.find(key);
      if (group == groups.end()) {
        if (groups.size() == kFailurePatternsMax) continue;
        OpenGroup fresh{.group = {.kind = key.first, .pattern = key.second}};
        group = groups.emplace(std::move(key), std::move(fresh)).first;
      }
      Add(attempt, group->second);
    }
    if (!rows.status().ok()) return rows.status().error();
  }
  for (auto& [key, open] : groups) failures.groups.push_back(std::move(open.group));
  std::ranges::stable_sort(failures.groups, std::greater(), &FailureGroup::attempts);
  if (failures.groups.size() > kFailureGroupsMax) failures.groups.resize(kFailureGroupsMax);
  failures.ungrouped = failures.attempts;
  for (const FailureGroup& group : failures.groups) failures.ungrouped -= group.attempts;
  if (failures.first) {
    if (const Status whole = ReadWhole(connection, *failures.first); !whole.ok())
      return whole.error();
  }
  return failures;
}

}  // namespace attune::server
