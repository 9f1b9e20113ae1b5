#include "server/http/routes/fleet/usage.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/analysis/occupancy.h"
#include "server/http/answers/answers.h"
#include "server/http/answers/render.h"
#include "server/http/routes/request/query.h"
#include "server/http/transport/problem.h"
#include "server/store/format_time.h"

namespace attune::server {
namespace {

constexpr int64_t kHourUs = int64_t{3600} * 1'000'000;
constexpr int64_t kDayUs = 24 * kHourUs;

// A time in the query, or `fallback` if it is absent. kInvalid names the parameter.
Result<Time> TimeQuery(const Request& request, std::string_view name, Time fallback) {
  const auto text = request.Query(name);
  if (!text) return fallback;
  if (const auto time = ParseTime(*text)) return *time;
  return Invalid(std::string(name) + ": '" + *text +
                 "' is not a time in UTC such as 2026-11-21T10:00:00Z");
}

using HeldByExecutor = std::map<std::string, std::vector<HeldSlots>>;

HeldByExecutor HeldOf(const HeldPage& page, Time now) {
  HeldByExecutor held;
  for (const HeldRow& row : page.attempts) {
    for (const HeldRank& rank : row.ranks)
      held[rank.slot.executor].push_back({.begin = row.begin,
                                          .end = row.end.value_or(now),
                                          .cpus = rank.slot.cpus,
                                          .gpus = rank.slot.gpus,
                                          .gpu_share = rank.slot.gpu_percent / 100.0});
  }
  return held;
}

// Adds the shares of one period to an executor. A period that began before `known` is left out.
void AddShares(const std::vector<HeldSlots>& held, const Resources& total, Time from, Time to,
               Time known, std::optional<double> rest::OccupancyShares::*period,
               rest::ExecutorOccupancy& executor) {
  if (from >= to || from < known) return;
  const Occupancy occupancy = OccupancyOf(held, total.cpus, total.gpus, from, to);
  executor.share.*period = occupancy.share;
  for (const auto& [gpu, share] : occupancy.gpus)
    executor.gpus[static_cast<size_t>(gpu)].*period = share;
}

}  // namespace

Response Usage::Timeline(const Request& request, const Target&) {
  const auto until = TimeQuery(request, "until", WallTime());
  if (!until.ok()) return Problem(until.error());
  const auto since = TimeQuery(request, "since", Time{until->us - kHourUs});
  if (!since.ok()) return Problem(since.error());
  if (*since >= *until)
    return Problem(rest::ProblemType::kInvalidRequest, "since: it is not before until");
  const auto limit = IntegerQuery(request, "limit", kTimelineDefault, 1, kTimelineMax);
  if (!limit.ok()) return Problem(limit.error());
  const auto held = reader_.HeldSlots(*since, *until, request.Query("executor").value_or(""),
                                      static_cast<size_t>(*limit));
  if (!held.ok()) return Problem(held.error());
  rest::Timeline timeline{
      .since = FormatTime(*since), .until = FormatTime(*until), .more = held->more};
  for (const HeldRow& row : held->attempts) timeline.attempts.push_back(RenderHeld(row));
  return Render(timeline);
}

Response Usage::Occupancies(const Request&, const Target&) {
  const Time now = WallTime();
  const auto joins = reader_.Joins();
  if (!joins.ok()) return Problem(joins.error());
  std::map<std::string, Resources> totals;
  for (const auto& status : backend_.Executors()) totals.emplace(status.name, status.total);

  Time first = now;
  for (const JoinRow& join : *joins) {
    if (totals.contains(join.executor)) first = std::min(first, join.joined);
  }
  const auto page = reader_.HeldSlots(first, now, "", kOccupancyAttempts);
  if (!page.ok()) return Problem(page.error());
  // All attempts with an end after `known` were read.
  const Time known = page->more ? page->attempts.back().end.value_or(now) : first;
  const HeldByExecutor held = HeldOf(*page, now);

  rest::OccupancyList list{.time = FormatTime(now)};
  for (const JoinRow& join : *joins) {
    const auto total = totals.find(join.executor);
    if (total == totals.end()) continue;
    rest::ExecutorOccupancy& executor = list.executors.emplace_back();
    executor.executor = join.executor;
    executor.joined = FormatTime(join.joined);
    if (join.lost) executor.lost = FormatTime(*join.lost);
    executor.gpus.resize(static_cast<size_t>(total->second.gpus));
    const auto own = held.find(join.executor);
    const std::vector<HeldSlots> none;
    const Time end = std::min(now, join.lost.value_or(now));
    const auto add = [&](Time from, std::optional<double> rest::OccupancyShares::*period) {
      AddShares(own == held.end() ? none : own->second, total->second, std::max(from, join.joined),
                end, known, period, executor);
    };
    add(Time{now.us - kHourUs}, &rest::OccupancyShares::hour);
    add(Time{now.us - kDayUs}, &rest::OccupancyShares::day);
    add(join.joined, &rest::OccupancyShares::joined);
  }
  return Render(list);
}

}  // namespace attune::server
