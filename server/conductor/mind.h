#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/brain/brain.h"

namespace attune::server {

// The brain's moves, as the conductor makes them. The simulator puts a scribe here, or a fault.
class Mind {
 public:
  virtual ~Mind() = default;
  virtual Result<std::vector<Event>> Execute(const Command& command, Time now,
                                             std::string_view actor) = 0;
  // What follows, or a portion of it: no more than one transaction should hold.
  virtual Brain::Portion Advance(Time now) = 0;
  virtual Brain& brain() = 0;  // to load, to replay, to look at
};

// How many events that nobody has asked for one transaction holds, about: what is submitted
// meanwhile waits no longer than that.
inline constexpr size_t kPortionEvents = 2'000;

// A fresh one, of which nothing is known yet.
using MakeMind = std::function<std::unique_ptr<Mind>()>;

// The brain itself. `algorithms` outlives it.
std::unique_ptr<Mind> MakeBrainMind(const Algorithms& algorithms, Reachable reachable);

}  // namespace attune::server
