#include "core/brain/brain.h"

#include <algorithm>
#include <limits>
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
  LookAgain();
  return Advance(now, std::numeric_limits<size_t>::max()).events;
}

Brain::Portion Brain::Advance(Time now, size_t max_events) {
  now = std::max(now, state_.last_time);
  agenda_.BeginPass();
  Portion portion;
  while (portion.events.size() < max_events) {
    NoteChanges();
    std::vector<Fact> facts = attune::Advance(state_, reachable_, now, agenda_);
    if (facts.empty()) return portion;
    Commit(std::move(facts), now, portion.events);
  }
  portion.more = true;
  return portion;
}

std::optional<Time> Brain::Due(Time now) const {
  const Touched& touched = state_.touched;
  const bool noted = !touched.all && touched.sweeps.empty() && touched.executors.empty();
  return noted ? agenda_.Due(state_, now) : attune::Due(state_, now);
}

void Brain::NoteChanges() {
  agenda_.Take(state_, state_.touched);
  state_.touched = {.all = false};
}

void Brain::Commit(std::vector<Fact> facts, Time now, std::vector<Event>& events) {
  for (Fact& fact : facts) {
    const Event& event =
        events.emplace_back(Event{EventSeq(state_.last_seq.value + 1), now, std::move(fact)});
    Apply(state_, event);
  }
}

}  // namespace attune
