#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "core/base/ids.h"
#include "rest/contract.h"
#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"

namespace attune::server {

// The most fleets that are kept. The fleet with the oldest report is forgotten first.
inline constexpr size_t kFleetsMax = 16;

// The newest report of each manager of pilots. Any thread.
class Pilots {
 public:
  using Clock = std::chrono::steady_clock;

  // A manager is stale if it was silent for longer than this and longer than three of its rounds.
  static constexpr std::chrono::seconds kFresh{15};

  Response Report(const Request& request, const Target& target);
  Response List(const Request& request, const Target& target);

  // Why the gangs of a sweep get no pilots, according to managers that are not stale. Each reason
  // follows a semicolon; empty: no reason is known.
  std::string WhyNoPilots(SweepId sweep) const;

 private:
  struct Fleet {
    rest::FleetReport report;
    Clock::time_point heard;
    double fresh_seconds = 0;
  };

  mutable std::mutex mutex_;
  std::map<std::string, Fleet> fleets_;  // by name
};

}  // namespace attune::server
