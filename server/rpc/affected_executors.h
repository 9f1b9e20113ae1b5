#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/log/event.h"
#include "core/state/state.h"

namespace attune::server {

// Finds the executors whose desired state may have changed with some events, so that only theirs is
// computed again. It may name too many executors, never too few.
class AffectedExecutors {
 public:
  struct Executors {
    std::set<std::string> names;
    bool removals = false;  // also all executors with pending removals
    bool all = false;       // all executors
  };

  void Load(const State& state);
  Executors Find(std::span<const Event> events);

 private:
  void AddGangs(const Fact& fact, Executors& affected) const;
  void Add(const TrialId& trial, Executors& affected) const;
  void Add(SweepId sweep, Executors& affected) const;

  // the executors of each trial's gang that holds slots
  std::map<TrialId, std::set<std::string>> hosts_of_trials_;
};

}  // namespace attune::server
