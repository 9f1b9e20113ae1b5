#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "executor/agent/machine.h"
#include "executor/agent/messages.h"

// Facts that do not come from gangs.
namespace attune::agent {

void Machine::OnRemoved(const v1::CheckpointRemoval& removal, const Now& now) {
  v1::CheckpointName checkpoint;
  checkpoint.set_sweep(removal.sweep());
  checkpoint.set_trial(removal.trial());
  checkpoint.set_attempt(removal.attempt());
  checkpoint.set_step(removal.step());
  OnCheckpointGone(checkpoint, now);
}

void Machine::OnCheckpointGone(const v1::CheckpointName& checkpoint, const Now& now) {
  v1::Fact fact;
  fact.set_time_us(now.wall_us);
  v1::CheckpointRemoved& removed = *fact.mutable_removed();
  removed.set_sweep(checkpoint.sweep());
  removed.set_trial(checkpoint.trial());
  removed.set_attempt(checkpoint.attempt());
  removed.set_step(checkpoint.step());
  removed.set_identity(hello_.identity());
  outbox_.Add(std::move(fact));
}

void Machine::OnSweepRemoved(uint64_t sweep, const Now& now) {
  sweeps_.erase(sweep);
  v1::Fact fact;
  fact.set_time_us(now.wall_us);
  fact.mutable_sweep_removed()->set_sweep(sweep);
  fact.mutable_sweep_removed()->set_identity(hello_.identity());
  outbox_.Add(std::move(fact));
}

void Machine::OnRecorded(const gang::AttemptId& attempt, std::string record, const Now& now) {
  v1::Fact fact;
  *fact.mutable_attempt() = ToProto(attempt);
  fact.set_time_us(now.wall_us);
  fact.mutable_recorded()->set_record(std::move(record));
  outbox_.Add(std::move(fact));
}

void Machine::OnStored(const v1::CheckpointName& checkpoint, const std::string& digest,
                       const std::string& address, const Now& now) {
  v1::Fact fact;
  fact.set_time_us(now.wall_us);
  v1::CheckpointStored& stored = *fact.mutable_stored();
  *stored.mutable_checkpoint() = checkpoint;
  stored.set_digest(digest);
  stored.set_address(address);
  outbox_.Add(std::move(fact));
}

void Machine::OnStorageProblem(const std::string& problem) {
  storage_problem_ = ValidUtf8(problem);
}

void Machine::OnUploadSkipped(const std::string& stored_path) {
  if (std::ranges::find(skipped_uploads_, stored_path) != skipped_uploads_.end()) return;
  if (skipped_uploads_.size() == kSkippedUploadsMax) skipped_uploads_.pop_front();
  skipped_uploads_.push_back(stored_path);
  is_skip_untold_ = true;
}

}  // namespace attune::agent
