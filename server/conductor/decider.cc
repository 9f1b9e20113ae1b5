#include "server/conductor/decider.h"

#include <utility>

#include "base/result.h"

namespace attune::server {
namespace {

class BrainDecider final : public Decider {
 public:
  BrainDecider(const Algorithms& algorithms, Reachable reachable)
      : brain_(algorithms, std::move(reachable)) {}

  Result<std::vector<Event>> Execute(const Command& command, Time now,
                                     std::string_view actor) override {
    return brain_.Execute(command, now, actor);
  }
  Brain::Portion Advance(Time now) override {
    brain_.RecheckReachable();
    return brain_.Advance(now, kPortionEvents);
  }
  Brain& brain() override { return brain_; }

 private:
  Brain brain_;
};

}  // namespace

std::unique_ptr<Decider> MakeBrainDecider(const Algorithms& algorithms, Reachable reachable) {
  return std::make_unique<BrainDecider>(algorithms, std::move(reachable));
}

}  // namespace attune::server
