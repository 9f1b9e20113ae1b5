#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/brain/decide.h"
#include "core/state/state.h"

namespace attune {

// A gang that waits for its start.
struct QueuedGang {
  SweepId sweep;
  std::optional<TrialNumber> trial;  // nullopt: a trial that the sweep creates next
  int gangs = 1;  // an upper bound, at most kDemandGangsMax; above 1 only for new trials
  // Whether only free slots are missing. If not, other slots do not help: the sweep is paused or
  // runs as many trials as it may, or the trial waits for a time or a client.
  bool ready = false;
  int priority = 0;
  double share = 0;        // the dominant share of the sweep's owner now
  double sweep_share = 0;  // the dominant share of the sweep now
  Time not_before;         // the earliest start of the trial
  std::string reason;      // why it does not start
};

struct GangQueue {
  std::vector<QueuedGang> gangs;
  int64_t total = 0;  // the number of entries of the whole queue
};

// Entries of the queue from this number on are not listed.
inline constexpr size_t kQueueEntriesMax = 2'000;

// The entries of the queue from number `first` on, at most `limit` of them and none from
// kQueueEntriesMax on.
//
// The ready gangs come first, in the order in which the brain would start them if slots became free
// one gang after the other (core/brain/contention.h): the highest priority, then the owner and the
// sweep with the smallest dominant share, then the number of the trial. Each gang of the list
// increases the shares of its owner and its sweep for the gangs after it. The order is an estimate:
// a gang that does not fit may start after a smaller one, and running gangs end meanwhile. The
// other gangs follow, by sweep and trial.
GangQueue Queue(const State& state, const Reachable& reachable, Time now, size_t first,
                size_t limit);

}  // namespace attune
