#include "core/brain/brain.h"

#include <algorithm>
#include <utility>

namespace attune {

Result<std::vector<Event>> Brain::Execute(const Command& command, Time now) {
  now = std::max(now, state_.last_time);
  std::vector<Event> events;
  for (bool more = true; more;) {
    auto facts = Decide(state_, command, now);
    if (!facts.ok()) return facts.error();
    more = GoesOn(command, *facts);
    Commit(std::move(facts).value(), now, events);
  }
  return events;
}

std::vector<Event> Brain::Advance(Time now) {
  now = std::max(now, state_.last_time);
  std::vector<Event> events;
  for (;;) {
    std::vector<Fact> facts = attune::Advance(state_, reachable_, now);
    if (facts.empty()) return events;
    Commit(std::move(facts), now, events);
  }
}

void Brain::Commit(std::vector<Fact> facts, Time now, std::vector<Event>& events) {
  for (Fact& fact : facts) {
    const Event& event =
        events.emplace_back(Event{EventSeq(state_.last_seq.value + 1), now, std::move(fact)});
    Apply(state_, event);
  }
}

}  // namespace attune
