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

// Makes the decider of the simulated server: the real brain, or a brain with a deliberate fault.
std::unique_ptr<server::Decider> MakeDecider(Variant variant, Reachable reachable);

// One call of the brain in a batch that became durable: a command, or a call of Advance.
struct Input {
  std::optional<Command> command;  // nullopt: a call of Advance
  Time now;
  std::map<std::string, Reach> reach;  // of the executors known at that time
};

// Records the calls of a decider that produced events.
class RecordingDecider final : public server::Decider {
 public:
  // Appends to `inputs`, which must outlive this object.
  RecordingDecider(std::unique_ptr<server::Decider> decider, Reachable reachable,
                   std::vector<Input>& inputs)
      : decider_(std::move(decider)), reachable_(std::move(reachable)), inputs_(inputs) {}

  Result<std::vector<Event>> Execute(const Command& command, Time now,
                                     std::string_view actor) override;
  Brain::Portion Advance(Time now) override;
  Brain& brain() override { return decider_->brain(); }

 private:
  std::map<std::string, Reach> CurrentReach();

  std::unique_ptr<server::Decider> decider_;
  Reachable reachable_;
  std::vector<Input>& inputs_;
};

}  // namespace attune::sim
