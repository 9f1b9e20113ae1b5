#include "tests/sim/checkers/promises.h"

#include <algorithm>

#include "server/rpc/convert.h"
#include "tests/sim/checkers/words.h"

namespace attune::sim {

void Promises::OnDurable(const Event& event) {
  if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact))
    epochs_.emplace(assigned->epoch, assigned->attempt);
  if (const auto* reported = std::get_if<TrialReported>(&event.fact))
    reports_.emplace(reported->attempt, reported->report.step);
}

void Promises::OnRestored(EventSeq last) {
  std::erase_if(answered_, [&](const auto& told) { return told.first > last; });
  // If an executor was told of an epoch, no other attempt may get it. The server may use any other
  // epoch again, but an assignment with it may still be on its way.
  for (auto assigned = epochs_.begin(); assigned != epochs_.end();) {
    if (told_.contains(assigned->first)) {
      ++assigned;
    } else {
      on_their_way_.insert(*assigned);
      assigned = epochs_.erase(assigned);
    }
  }
  reports_.clear();
}

void Promises::OnAnswered(std::span<const Event> events) {
  for (const Event& event : events) answered_.emplace(event.seq, Describe(event));
}

void Promises::OnAssigned(const v1::Assignment& assignment) {
  const AttemptId attempt = server::FromProto(assignment.attempt());
  const Epoch epoch(assignment.attempt().epoch());
  told_.insert(epoch);
  const auto found = epochs_.find(epoch);
  const bool is_known = found != epochs_.end() && found->second == attempt;
  if (!is_known && !on_their_way_.contains({epoch, attempt}))
    findings_.Report("an executor is to run " + ToString(attempt) + " of epoch " +
                     std::to_string(epoch.value) + ", of which the log knows nothing");
}

void Promises::OnAcknowledged(const std::string& executor, const v1::Fact& fact) {
  if (!fact.has_attempt()) return;
  const AttemptId id = server::FromProto(fact.attempt());
  const TrialBook* trial = books_.Find(id.trial);
  const bool live =
      trial != nullptr && trial->live && trial->live->epoch == Epoch(fact.attempt().epoch());
  if (fact.has_report() && live) return Reported(id, Step(fact.report().step()));
  const bool holds = live && std::ranges::any_of(trial->live->ranks, [&](const RankSlot& slot) {
                       return slot.executor == executor;
                     });
  if (holds && fact.has_ended())
    findings_.Report("the end of " + ToString(id) + " is acknowledged, and not in the log");
  if (holds && fact.has_checkpoint() &&
      books_.Find({id.trial, id.number, Step(fact.checkpoint().step())}) == nullptr)
    findings_.Report(fact.checkpoint().path() + " is acknowledged, and not in the log");
}

// A report of steps that the trial had reported before changes nothing, nor does one of an attempt
// that is not believed any more.
void Promises::Reported(const AttemptId& attempt, Step step) {
  if (reports_.contains({attempt, step})) return;
  const TrialBook* trial = books_.Find(attempt.trial);
  const bool believed = trial != nullptr && trial->live && trial->live->id == attempt &&
                        trial->state == TrialState::kRunning && !trial->live->left &&
                        !trial->live->fallen;
  if (believed && trial->last_step < step)
    findings_.Report("the report of " + ToString(attempt) + " at step " +
                     std::to_string(step.value) + " is acknowledged, and not in the log");
}

void Promises::AtEnd(std::span<const Event> log) {
  for (const auto& [seq, told] : answered_) {
    if (seq.value > log.size() || Describe(log[seq.value - 1]) != told)
      findings_.Report("somebody was told, and the log knows nothing of it: " + told);
  }
}

}  // namespace attune::sim
