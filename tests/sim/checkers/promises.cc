#include "tests/sim/checkers/promises.h"

#include <algorithm>

#include "server/rpc/convert.h"
#include "server/rpc/desired.h"
#include "tests/sim/checkers/describe.h"

namespace attune::sim {

void Promises::OnDurable(const Event& event) {
  if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact))
    epochs_.emplace(assigned->epoch, assigned->attempt);
  if (const auto* reported = std::get_if<TrialReported>(&event.fact))
    reports_.emplace(reported->attempt, reported->report.step);
}

void Promises::OnRestored(EventSeq last) {
  std::erase_if(answered_, [&](const auto& answer) { return answer.first > last; });
  // If an executor was told of an epoch, no other attempt may get it. The server may use any other
  // epoch again, but an assignment with it may still be on its way.
  for (auto assigned = epochs_.begin(); assigned != epochs_.end();) {
    if (told_.contains(assigned->first)) {
      ++assigned;
    } else {
      in_flight_.insert(*assigned);
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
  if (!is_known && !in_flight_.contains({epoch, attempt}))
    findings_.Report("an executor was told to run " + ToString(attempt) + " with epoch " +
                     std::to_string(epoch.value) + ", which is not in the log");
  const TrialBook* trial = books_.Find(attempt.trial);
  if (!is_known || trial == nullptr || !trial->live || trial->live->epoch != epoch) return;
  const SweepSpec& spec = books_.sweeps.at(attempt.trial.sweep).spec;
  const std::string code = trial->patch ? trial->patch->code : CodeDigestOf(spec, trial->config);
  if (assignment.program().code().digest() != code)
    findings_.Report("an executor was told to run " + ToString(attempt) + " with other code");
}

void Promises::OnAcknowledged(const std::string& executor, const v1::Fact& fact) {
  if (!fact.has_attempt()) return;
  const AttemptId id = server::FromProto(fact.attempt());
  const TrialBook* trial = books_.Find(id.trial);
  const bool live =
      trial != nullptr && trial->live && trial->live->epoch == Epoch(fact.attempt().epoch());
  if (fact.has_report() && live) return CheckAcknowledgedReport(id, Step(fact.report().step()));
  const bool holds_slots =
      live && std::ranges::any_of(trial->live->ranks,
                                  [&](const RankSlot& slot) { return slot.executor == executor; });
  if (holds_slots && fact.has_ended())
    findings_.Report("the end of " + ToString(id) + " was acknowledged but is not in the log");
  if (holds_slots && fact.has_checkpoint() &&
      books_.Find({id.trial, id.number, Step(fact.checkpoint().step())}) == nullptr)
    findings_.Report(fact.checkpoint().path() + " was acknowledged but is not in the log");
}

// An acknowledged report must be in the log, with two exceptions: its steps were reported before,
// or the server no longer accepts reports of this attempt.
void Promises::CheckAcknowledgedReport(const AttemptId& attempt, Step step) {
  if (reports_.contains({attempt, step})) return;
  const TrialBook* trial = books_.Find(attempt.trial);
  const bool accepted = trial != nullptr && trial->live && trial->live->id == attempt &&
                        trial->state == TrialState::kRunning && !trial->live->left &&
                        !trial->live->fallen;
  if (accepted && trial->last_step < step)
    findings_.Report("the report of " + ToString(attempt) + " at step " +
                     std::to_string(step.value) + " was acknowledged but is not in the log");
}

void Promises::AtEnd(std::span<const Event> log) {
  for (const auto& [seq, description] : answered_) {
    if (seq.value > log.size() || Describe(log[seq.value - 1]) != description)
      findings_.Report("an answer is not in the log: " + description);
  }
}

}  // namespace attune::sim
