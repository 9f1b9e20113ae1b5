#include "tests/sim/promises.h"

#include "tests/sim/words.h"

namespace attune::sim {

void Promises::OnDurable(const Event& event) {
  if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact))
    epochs_.emplace(assigned->epoch, assigned->attempt);
  if (const auto* reported = std::get_if<TrialReported>(&event.fact))
    reports_.emplace(reported->attempt, reported->report.step);
}

void Promises::OnAnswered(std::span<const Event> events) {
  for (const Event& event : events) answered_.emplace(event.seq, Describe(event));
}

void Promises::OnAssigned(const Assignment& assignment) {
  const auto found = epochs_.find(assignment.epoch);
  if (found == epochs_.end() || found->second != assignment.attempt)
    findings_.Report("an executor is to run " + ToString(assignment.attempt) + " of epoch " +
                     std::to_string(assignment.epoch.value) + ", of which the log knows nothing");
}

void Promises::OnAcknowledged(const Command& command) {
  const auto* record = std::get_if<RecordFact>(&command);
  if (record == nullptr) return;
  if (const auto* reported = std::get_if<TrialReported>(&record->fact)) return Reported(*reported);
  const AttemptId id = std::visit([](const auto& fact) { return fact.attempt; }, record->fact);
  const TrialBook* trial = books_.Find(id.trial);
  const bool live = trial != nullptr && trial->live && trial->live->epoch == record->epoch;
  const auto* saved = std::get_if<CheckpointSaved>(&record->fact);
  if (live && std::holds_alternative<AttemptEnded>(record->fact))
    findings_.Report("the end of " + ToString(id) + " is acknowledged, and not in the log");
  if (live && saved != nullptr &&
      books_.Find({id.trial, id.number, saved->checkpoint.step}) == nullptr)
    findings_.Report(saved->checkpoint.path + " is acknowledged, and not in the log");
}

// A report of steps that the trial had reported before changes nothing, nor does one of an attempt
// that is not believed any more.
void Promises::Reported(const TrialReported& fact) {
  if (reports_.contains({fact.attempt, fact.report.step})) return;
  const TrialBook* trial = books_.Find(fact.attempt.trial);
  const bool believed = trial != nullptr && trial->live && trial->live->id == fact.attempt &&
                        trial->state == TrialState::kRunning && !trial->live->left;
  if (believed && trial->last_step < fact.report.step)
    findings_.Report("the report of " + ToString(fact.attempt) + " at step " +
                     std::to_string(fact.report.step.value) +
                     " is acknowledged, and not in the log");
}

void Promises::AtEnd(std::span<const Event> log) {
  for (const auto& [seq, told] : answered_) {
    if (seq.value > log.size() || Describe(log[seq.value - 1]) != told)
      findings_.Report("somebody was told, and the log knows nothing of it: " + told);
  }
}

}  // namespace attune::sim
