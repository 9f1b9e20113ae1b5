#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "core/base/ids.h"
#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"
#include "server/store/json.h"

namespace attune::server {

// Fleets that are remembered; beyond that the one that was heard of longest ago is forgotten.
inline constexpr size_t kFleetsMax = 16;
inline constexpr size_t kPilotsMax = 10'000;  // of a fleet

// What the keepers of pilots have said last. Any thread.
class Pilots {
 public:
  using Clock = std::chrono::steady_clock;

  // A keeper that has been silent for longer than this, and three of its rounds, is stale: nobody
  // knows how its pilots are.
  static constexpr std::chrono::seconds kFresh{15};

  Response Report(const Request& request, const Target& target);
  Response List(const Request& request, const Target& target);

  // What keepers that are not stale say about why the gangs of a sweep get no pilots, with a
  // semicolon before it, to stand behind what they wait for; empty where there is nothing to say.
  std::string Hindering(SweepId sweep) const;

 private:
  struct Fleet {
    Json said;
    Clock::time_point heard;
    double fresh_seconds = 0;
  };

  Json Shown(const Fleet& fleet) const;

  mutable std::mutex mutex_;
  std::map<std::string, Fleet> fleets_;  // by their names
};

}  // namespace attune::server
