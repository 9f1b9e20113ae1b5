#include "server/conductor/mind.h"

#include <utility>

#include "base/result.h"

namespace attune::server {
namespace {

class BrainMind final : public Mind {
 public:
  BrainMind(const Algorithms& algorithms, Reachable reachable)
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

std::unique_ptr<Mind> MakeBrainMind(const Algorithms& algorithms, Reachable reachable) {
  return std::make_unique<BrainMind>(algorithms, std::move(reachable));
}

}  // namespace attune::server
