#include "core/brain/audit.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/brain/record.h"
#include "core/log/command.h"
#include "core/log/fact_fields.h"

namespace attune {

namespace {

// The same kind of fact with the same content, bit for bit.
bool Same(const Fact& a, const Fact& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&]<class T>(const T& fact) {
        ArchiveWriter one, other;
        one(fact);
        other(std::get<T>(b));
        return one.Take() == other.Take();
      },
      a);
}

// The part of a decision that a person looks at.
std::string Text(const Fact& fact) {
  if (const auto* decided = std::get_if<TrialDecided>(&fact))
    return std::string(Name(decided->verdict.kind)) + " (" + decided->verdict.reason.text + ")";
  if (const auto* ended = std::get_if<TrialEnded>(&fact))
    return std::string(Name(ended->state)) + " (" + ended->reason + ")";
  if (const auto* yielding = std::get_if<TrialYielding>(&fact))
    return "yield (" + yielding->verdict.reason.text + ")";
  return "another kind of fact";
}

std::string Text(const Config& config) {
  std::string text;
  for (const auto& [name, value] : config.entries())
    text += (text.empty() ? "" : ", ") + name + "=" + FormatValue(value);
  return text;
}

// Whether the state has what Apply takes for granted of an event that a brain has written.
bool Fits(const State& state, const Event& event) {
  const Fact& fact = event.fact;
  const auto is = [&]<class... F>() { return (std::holds_alternative<F>(fact) || ...); };
  if (event.seq.value != state.last_seq.value + 1) return false;
  if (const auto* created = std::get_if<SweepCreated>(&fact)) {
    return state.Find(created->sweep) == nullptr &&
           state.algorithms->MakeSearcher(created->spec).ok() &&
           state.algorithms->MakeScheduler(created->spec).ok();
  }
  if (const auto* lost = std::get_if<ExecutorLost>(&fact))
    return state.executors.contains(lost->name);
  const auto id = SweepOf(fact);
  if (!id || is.operator()<CheckpointRemoved, SlotsReserved, ReservationReleased>()) return true;
  const Sweep* sweep = state.Find(*id);
  const auto ended = state.ended.find(*id);
  if (is.operator()<SweepReopened>())
    return ended != state.ended.end() && !ended->second.saved.empty();
  if (is.operator()<CheckpointPinned>()) return sweep != nullptr || ended != state.ended.end();
  if (sweep == nullptr) return false;
  if (const auto* created = std::get_if<TrialCreated>(&fact))
    return created->trial.number.value == static_cast<uint32_t>(sweep->created);
  const auto number = TrialOf(fact);
  if (!number || is.operator()<TrialReopened, CheckpointDropped>()) return true;
  const Trial* trial = state.Find(*number);
  if (trial == nullptr) return false;
  if (const auto* assigned = std::get_if<AttemptAssigned>(&fact)) {
    return !trial->live && std::ranges::all_of(assigned->ranks, [&](const RankSlot& slot) {
      return state.executors.contains(slot.executor);
    });
  }
  if (const auto* decided = std::get_if<TrialDecided>(&fact);
      decided != nullptr && decided->verdict.kind == VerdictKind::kExploit && !decided->cloned)
    return false;
  return trial->live || is.operator()<TrialYielding, TrialRequeued, TrialEnded>();
}

}  // namespace

std::optional<std::string> Auditor::Next(const Event& event) {
  if (!Fits(state_, event)) return "does not fit what came before it: no brain has written this";
  std::optional<std::string> fault;
  if (!expected_.empty()) {
    fault = CheckConsequence(event);
  } else if (const auto* created = std::get_if<TrialCreated>(&event.fact)) {
    fault = CheckProposal(*created);
  } else if (const auto* reported = std::get_if<TrialReported>(&event.fact)) {
    Expect(*reported, event.time);
  }
  Apply(state_, event);
  return fault;
}

std::optional<std::string> Auditor::CheckProposal(const TrialCreated& created) {
  if (created.origin == kEnqueued) return std::nullopt;
  ++proposals_;
  const Sweep& sweep = *state_.Find(created.trial.sweep);
  const auto& points = sweep.spec.initial_points;
  const auto used = static_cast<size_t>(sweep.points_used);
  const std::optional<Config> proposed =
      used < points.size() ? points[used] : sweep.searcher->Suggest(created.trial.number);
  if (proposed == created.config) return std::nullopt;
  return "trial " + ToString(created.trial) + " is recorded with " + Text(created.config) +
         "; at this place " + sweep.spec.searcher.name + " proposes " +
         (proposed ? Text(*proposed) : "nothing");
}

// The facts that the report leads to beside itself.
void Auditor::Expect(const TrialReported& reported, Time now) {
  const Trial* trial = state_.Find(reported.attempt.trial);
  if (trial == nullptr || !trial->live) return;
  Facts facts;
  Record(state_, RecordFact{trial->live->epoch, reported}, now, facts);
  if (facts.empty()) return;
  expected_.assign(std::make_move_iterator(facts.begin() + 1),
                   std::make_move_iterator(facts.end()));
}

std::optional<std::string> Auditor::CheckConsequence(const Event& event) {
  const Fact expected = std::move(expected_.front());
  expected_.pop_front();
  if (std::holds_alternative<TrialDecided>(expected)) ++verdicts_;
  if (Same(expected, event.fact)) return std::nullopt;
  expected_.clear();
  const auto trial = TrialOf(expected);
  return (trial ? "trial " + ToString(*trial) : "a sweep") + ": recorded is " + Text(event.fact) +
         "; at this place follows " + Text(expected);
}

}  // namespace attune
