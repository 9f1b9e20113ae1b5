#include "server/http/routes/fleet/pilots.h"

#include <algorithm>
#include <utility>

#include "json/parse.h"
#include "server/http/answers/answers.h"
#include "server/http/transport/problem.h"

namespace attune::server {
namespace {

constexpr double kPollMaxSeconds = 3'600;

double SecondsSince(Pilots::Clock::time_point then) {
  return std::chrono::duration<double>(Pilots::Clock::now() - then).count();
}

}  // namespace

Response Pilots::Report(const Request& request, const Target&) {
  const rest::Json json = ParseJson<rest::Json>(request.body);
  if (json.is_discarded())
    return Problem(rest::ProblemType::kMalformedBody, "the body is not JSON");
  auto report = rest::Parse<rest::FleetReport>(json);
  if (!report.ok()) return Problem(rest::ProblemType::kInvalidDocument, report.error().message);
  const std::string name = report->fleet;
  const double rounds = 3 * std::min(report->poll_seconds, kPollMaxSeconds);
  Fleet fleet{.report = *std::move(report),
              .heard = Clock::now(),
              .fresh_seconds = std::max<double>(static_cast<double>(kFresh.count()), rounds)};
  const std::lock_guard lock(mutex_);
  fleets_[name] = std::move(fleet);
  if (fleets_.size() > kFleetsMax)
    fleets_.erase(
        std::ranges::min_element(fleets_, {}, [](const auto& each) { return each.second.heard; }));
  return Render(rest::FleetName{.fleet = name});
}

Response Pilots::List(const Request&, const Target&) {
  rest::FleetList list;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, fleet] : fleets_) {
    const double silent = SecondsSince(fleet.heard);
    list.fleets.push_back({{fleet.report}, silent, silent > fleet.fresh_seconds});
  }
  return Render(list);
}

std::string Pilots::WhyNoPilots(SweepId sweep) const {
  const std::string id = ToString(sweep);
  std::string text;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, fleet] : fleets_) {
    if (SecondsSince(fleet.heard) > fleet.fresh_seconds) continue;
    for (const rest::Blocker& blocker : fleet.report.blockers) {
      if (!blocker.sweep.empty() && blocker.sweep != id) continue;
      text += "; " + fleet.report.system + ": " + blocker.text;
    }
  }
  return text;
}

}  // namespace attune::server
