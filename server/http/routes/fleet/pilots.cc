#include "server/http/routes/fleet/pilots.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "json/parse.h"
#include "server/http/answers/answers.h"
#include "server/http/transport/problem.h"

namespace attune::server {
namespace {

constexpr size_t kTextMaxBytes = 4'096;
constexpr double kPollMaxSeconds = 3'600;

// The message about a part of a report that is wrong; nullopt: there is none. `check` looks at one
// text, list length or number.
class Checker {
 public:
  void Text(const char* name, const std::string& text) {
    if (text.size() > kTextMaxBytes)
      Fail(name, "is longer than " + std::to_string(kTextMaxBytes) + " bytes");
  }
  void Count(const char* name, size_t count) {
    if (count > kPilotsMax) Fail(name, "has more than " + std::to_string(kPilotsMax) + " elements");
  }
  void Number(const char* name, double number) {
    if (number < 0) Fail(name, "is negative");
  }

  const std::optional<std::string>& fault() const { return fault_; }

 private:
  void Fail(const char* name, const std::string& what) {
    if (!fault_) fault_ = std::string(name) + " " + what;
  }

  std::optional<std::string> fault_;
};

void Check(Checker& checker, const rest::Pilot& pilot) {
  for (const auto& [name, text] : {std::pair("pilots.name", &pilot.name),
                                   {"pilots.job", &pilot.job},
                                   {"pilots.state", &pilot.state},
                                   {"pilots.reason", &pilot.reason},
                                   {"pilots.node_list", &pilot.node_list},
                                   {"pilots.end_time", &pilot.end_time}})
    checker.Text(name, *text);
  checker.Number("pilots.nodes", static_cast<double>(pilot.nodes));
  checker.Number("pilots.ran_seconds", pilot.ran_seconds);
  checker.Count("pilots.executors", pilot.executors.size());
  for (const std::string& executor : pilot.executors) checker.Text("pilots.executors", executor);
}

void Check(Checker& checker, const rest::Amount& amount) {
  for (const double hours : {amount.nodes, amount.cpus, amount.gpus})
    checker.Number("hours", hours);
}

// The first fault of a report that has the right form.
std::optional<std::string> FaultOf(const rest::FleetReport& report) {
  Checker checker;
  if (report.fleet.empty()) return "fleet is empty";
  checker.Text("fleet", report.fleet);
  checker.Text("system", report.system);
  checker.Text("host", report.host);
  checker.Text("partition", report.partition);
  checker.Number("poll_seconds", report.poll_seconds);
  checker.Number("nodes_min", static_cast<double>(report.nodes_min));
  checker.Number("nodes_max", static_cast<double>(report.nodes_max));
  checker.Number("nodes_per_pilot", static_cast<double>(report.nodes_per_pilot));
  checker.Count("pilots", report.pilots.size());
  for (const rest::Pilot& pilot : report.pilots) Check(checker, pilot);
  checker.Count("blockers", report.blockers.size());
  for (const rest::Blocker& blocker : report.blockers) {
    checker.Text("blockers.sweep", blocker.sweep);
    checker.Text("blockers.text", blocker.text);
  }
  const rest::Hours& hours = report.hours;
  for (const rest::Amount* amount :
       {&hours.allocated, &hours.in_use, &hours.idle, &hours.unobserved})
    Check(checker, *amount);
  return checker.fault();
}

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
  if (const auto fault = FaultOf(*report))
    return Problem(rest::ProblemType::kInvalidDocument, *fault);
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

std::string Pilots::Blocking(SweepId sweep) const {
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
