#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/log/event.h"
#include "core/state/state.h"

namespace attune::server {

// Which executors' desired state events can have changed, so that only theirs is made again. It may
// name too many, never too few.
class Touched {
 public:
  struct Executors {
    std::set<std::string> names;
    bool removals = false;  // and all that are to remove something
    bool all = false;       // and all others
  };

  void Load(const State& state);
  Executors By(std::span<const Event> events);

 private:
  void AddGangs(const Fact& fact, Executors& touched) const;
  void Add(const TrialId& trial, Executors& touched) const;
  void Add(SweepId sweep, Executors& touched) const;

  std::map<TrialId, std::set<std::string>> where_;  // gangs that hold slots
};

}  // namespace attune::server
