#include "core/brain/brain.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/result.h"

namespace attune {

namespace {

// Whether the command states the fact. Otherwise the brain has derived it.
bool CommandStates(const Command& command, const Fact& fact) {
  const auto* record = std::get_if<RecordFact>(&command);
  if (record == nullptr) return true;
  return std::visit(
      [&](const auto& said) { return std::holds_alternative<std::decay_t<decltype(said)>>(fact); },
      record->fact);
}

// The actor of a command without a token: the executor that joins or that runs the gang, or
// kService.
std::string SpeakerOf(const State& state, const Command& command) {
  if (const auto* join = std::get_if<JoinExecutor>(&command)) return join->name;
  if (const auto* record = std::get_if<RecordFact>(&command)) {
    const AttemptId id = std::visit([](const auto& fact) { return fact.attempt; }, record->fact);
    const Trial* trial = state.Find(id.trial);
    if (trial != nullptr && trial->live && !trial->live->ranks.empty())
      return trial->live->ranks.front().executor;
  }
  return std::string(kService);
}

}  // namespace

Result<std::vector<Event>> Brain::Execute(const Command& command, Time now,
                                          std::string_view actor) {
  now = last_call_ = std::max(now, state_.last_time);
  const std::string speaker = actor.empty() ? SpeakerOf(state_, command) : std::string(actor);
  std::vector<Event> events;
  for (bool more = true; more;) {
    auto facts = Decide(state_, command, now);
    if (!facts.ok()) return facts.error();
    more = NeedsSecondDecision(command, *facts);
    for (Fact& fact : *facts) {
      const bool said = CommandStates(command, fact);
      Commit(std::move(fact), now, said ? speaker : kService, events);
    }
  }
  return events;
}

std::vector<Event> Brain::Advance(Time now) {
  RecheckReachable();
  return Advance(now, std::numeric_limits<size_t>::max()).events;
}

Brain::Portion Brain::Advance(Time now, size_t max_events) {
  now = last_call_ = std::max(now, state_.last_time);
  agenda_.BeginPass();
  Portion portion;
  while (portion.events.size() < max_events) {
    NoteChanges();
    std::vector<Fact> facts = attune::Advance(state_, reachable_, now, agenda_);
    if (facts.empty()) return portion;
    for (Fact& fact : facts) Commit(std::move(fact), now, kService, portion.events);
  }
  portion.more = true;
  return portion;
}

std::optional<Time> Brain::Due(Time now) const {
  const ChangedParts& changed = state_.changed_parts;
  const bool noted = !changed.all && changed.sweeps.empty() && changed.executors.empty();
  return noted ? agenda_.Due(state_, now) : attune::Due(state_, now);
}

void Brain::NoteChanges() {
  agenda_.Update(state_, state_.changed_parts);
  state_.changed_parts = {.all = false};
}

void Brain::Commit(Fact fact, Time now, std::string_view actor, std::vector<Event>& events) {
  const Event& event = events.emplace_back(
      Event{EventSeq(state_.last_seq.value + 1), now, std::move(fact), std::string(actor)});
  Apply(state_, event);
}

}  // namespace attune
