#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/brain/brain.h"
#include "tests/sim/variant.h"

namespace attune::sim {

// The brain as the server in this world has it: the real one, or one that is wrong on purpose.
class Mind {
 public:
  virtual ~Mind() = default;
  virtual Result<std::vector<Event>> Execute(const Command& command, Time now) = 0;
  virtual std::vector<Event> Advance(Time now) = 0;
  virtual Status Load(std::string_view snapshot) = 0;
  virtual void Replay(const Event& event) = 0;
  virtual const State& state() const = 0;
};

std::unique_ptr<Mind> MakeMind(Variant variant, Reachable reachable);

}  // namespace attune::sim
