#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/conductor/decider.h"
#include "tests/sim/variant.h"

namespace attune::sim {

// The brain as the server in this world has it: the real one, or one that is wrong on purpose.
std::unique_ptr<server::Decider> MakeMind(Variant variant, Reachable reachable);

// One thing the brain was asked, as it went into a batch that became durable: a command, or to
// advance.
struct Input {
  std::optional<Command> command;
  Time now;
  std::map<std::string, Reach> reach;  // of the executors that were there
};

// Writes down what a mind is asked, where that led to something.
class Scribe final : public server::Decider {
 public:
  // `inputs` is added to, and outlives the scribe.
  Scribe(std::unique_ptr<server::Decider> mind, Reachable reachable, std::vector<Input>& inputs)
      : mind_(std::move(mind)), reachable_(std::move(reachable)), inputs_(inputs) {}

  Result<std::vector<Event>> Execute(const Command& command, Time now,
                                     std::string_view actor) override;
  Brain::Portion Advance(Time now) override;
  Brain& brain() override { return mind_->brain(); }

 private:
  std::map<std::string, Reach> Reached();

  std::unique_ptr<server::Decider> mind_;
  Reachable reachable_;
  std::vector<Input>& inputs_;
};

}  // namespace attune::sim
