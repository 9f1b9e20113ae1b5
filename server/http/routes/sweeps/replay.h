#pragma once

#include <chrono>
#include <mutex>

#include "core/algorithms/algorithms.h"
#include "server/http/routes/request/route.h"
#include "server/http/transport/message.h"
#include "server/store/reader.h"

namespace attune::server {

inline constexpr int64_t kReplaySlotsMax = 100'000;
inline constexpr std::chrono::seconds kReplayTime{30};   // clients wait at most 40 s
inline constexpr int64_t kReplayReportsMax = 2'000'000;  // reports of the sweep
inline constexpr int kSimulatedSlotsDefault = 8;

// Replays a recorded sweep under another scheduler (simulator/replay.h), and simulates a sweep file
// (simulator/simulation.h). Only one of these runs at a time, because each occupies a processor:
// about 0.1 s for 1,000 trials with 3,500 reports.
class Replays {
 public:
  // Both arguments must outlive the object.
  Replays(Reader& reader, const Algorithms& algorithms)
      : reader_(reader), algorithms_(algorithms) {}

  Response ReplaySweep(const Request& request, const Target& target);
  Response SimulateSweep(const Request& request, const Target& target);

 private:
  Reader& reader_;
  const Algorithms& algorithms_;
  std::mutex one_at_a_time_;
};

}  // namespace attune::server
