#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/brain/brain.h"

namespace attune::server {

// Makes the conductor's decisions. The simulator replaces it to record or disturb decisions.
class Decider {
 public:
  virtual ~Decider() = default;
  virtual Result<std::vector<Event>> Execute(const Command& command, Time now,
                                             std::string_view actor) = 0;
  // Decides what follows without a command, up to the size of one transaction.
  virtual Brain::Portion Advance(Time now) = 0;
  virtual Brain& brain() = 0;  // for loading, replaying and reading its state
};

// About how many events without a command one transaction holds. It bounds how long submitted
// commands wait.
inline constexpr size_t kPortionEvents = 2'000;

// Makes a decider with an empty state.
using MakeDecider = std::function<std::unique_ptr<Decider>()>;

// Decides with a Brain. `algorithms` outlives it.
std::unique_ptr<Decider> MakeBrainDecider(const Algorithms& algorithms, Reachable reachable);

}  // namespace attune::server
