#include "core/brain/decide.h"

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "core/base/content_hash.h"
#include "core/brain/consequences.h"
#include "core/brain/decider.h"
#include "core/brain/drain.h"
#include "core/brain/executors.h"
#include "core/brain/record.h"
#include "core/state/ended.h"
#include "core/state/origin.h"
#include "core/state/retention.h"

namespace attune {
namespace {

// The lost part of the log has used fewer epochs than this. Two restores of the same backup
// continue at different epochs, because their identities differ.
constexpr uint64_t kEpochsLostMax = uint64_t{1} << 32;

Epoch EpochAfterRestore(const State& state, LogIdentity identity) {
  return Epoch(state.last_epoch.value + kEpochsLostMax + identity.value % kEpochsLostMax);
}

}  // namespace

// ---- executors and the log -------------------------------------------------------------------

Status Decider::operator()(const JoinExecutor& command) {
  return DecideJoin(state_, command, now_, facts_);
}

Status Decider::operator()(const LoseExecutor& command) {
  DecideLoss(state_, command, now_, facts_);
  return {};
}

Status Decider::operator()(const ReportHealth& command) {
  DecideHealth(state_, command, facts_);
  return {};
}

Status Decider::operator()(const DrainExecutor& command) {
  return DecideDrain(state_, command, now_, facts_);
}

Status Decider::operator()(const LeaveExecutor& command) {
  DecideLeave(state_, command, facts_);
  return {};
}

Status Decider::operator()(const ResumeExecutor& command) {
  return DecideResume(state_, command, facts_);
}

Status Decider::operator()(const RecordFact& command) {
  Record(state_, command, now_, facts_);
  return {};
}

Status Decider::operator()(const RecordEnvironment& command) {
  if (!CheckExists(command.sweep).ok()) return {};
  if (const Sweep* sweep = state_.Find(command.sweep)) {
    const auto known = sweep->environments.find(command.executor);
    if (known != sweep->environments.end() && known->second == ContentHash(command.record))
      return {};
  }
  Add(EnvironmentRecorded{command.sweep, command.executor, command.record});
  return {};
}

Status Decider::operator()(const RecordRemoval& command) {
  if (command.identity != IdentityOf(state_)) return {};
  const bool awaited = std::ranges::any_of(state_.removals, [&](const auto& holder) {
    return holder.second.contains(command.checkpoint);
  });
  if (awaited) {
    Add(CheckpointRemoved{command.checkpoint});
    return {};
  }
  const auto executor = state_.executors.find(command.executor);
  const Sweep* sweep = state_.Find(command.checkpoint.trial.sweep);
  const KeptCheckpoint* kept = sweep == nullptr ? nullptr : FindKept(*sweep, command.checkpoint);
  if (kept == nullptr || executor == state_.executors.end() ||
      !IsReadBy(state_, *kept, executor->second))
    return {};
  if (!kept->stored.empty()) {
    Add(CheckpointStored{command.checkpoint, kept->ref.digest, kept->stored, true});
    return {};
  }
  Add(CheckpointDropped{command.checkpoint, kept->executor, kept->ref.path, "its files are gone"});
  if (IsStoredOn(*kept, executor->second)) Add(CheckpointRemoved{command.checkpoint});
  return {};
}

// A checkpoint of a trial that has left the state may be recorded twice, which changes nothing.
Status Decider::operator()(const RecordStored& command) {
  if (!CheckExists(command.checkpoint.trial.sweep).ok()) return {};
  const Sweep* sweep = state_.Find(command.checkpoint.trial.sweep);
  if (sweep != nullptr && sweep->Find(command.checkpoint.trial.number) != nullptr) {
    const KeptCheckpoint* kept = FindKept(*sweep, command.checkpoint);
    if (kept == nullptr || kept->ref.digest != command.digest || kept->stored == command.address)
      return {};
  }
  Add(CheckpointStored{command.checkpoint, command.digest, command.address, false});
  return {};
}

Status Decider::operator()(const RecordSweepRemoval& command) {
  if (command.identity != IdentityOf(state_)) return {};
  const auto removals = state_.sweep_removals.find(command.folder);
  if (removals != state_.sweep_removals.end() && removals->second.contains(command.sweep))
    Add(SweepRemoved{command.sweep, command.folder, command.executor});
  return {};
}

Status Decider::operator()(const IdentifyLog& command) {
  if (command.before != IdentityOf(state_)) return {};
  const bool is_first = state_.parts.empty();
  Add(LogIdentified{
      .identity = command.identity,
      .last_epoch = is_first ? state_.last_epoch : EpochAfterRestore(state_, command.identity),
      .last_sweep = is_first ? SweepId(0) : state_.last_sweep,
      .reason = is_first ? "" : command.reason});
  return {};
}

Status Decider::operator()(const AdjustClock& command) {
  if (command.offset_us != state_.clock_offset_us)
    Add(ClockAdjusted{command.offset_us, command.reason});
  return {};
}

// ---- shared checks ---------------------------------------------------------------------------

Result<const Sweep*> Decider::FindOpen(SweepId id) const {
  if (const Sweep* sweep = state_.Find(id)) return sweep;
  if (Status exists = CheckExists(id); !exists.ok()) return exists.error();
  const auto ended = state_.ended.find(id);
  return Conflict("sweep " + ToString(id) + " has already ended" +
                  (ended == state_.ended.end()
                       ? std::string()
                       : ": it is " + std::string(Name(ended->second.state)) +
                             (ended->second.state == SweepState::kFailed
                                  ? "; to reopen it, retry its failed trials"
                                  : "")));
}

Result<const Sweep*> Decider::FindOpenOrEnded(SweepId id, Sweep& opened) const {
  if (const Sweep* sweep = state_.Find(id)) return sweep;
  if (Status stays = CheckStays(id); !stays.ok()) return stays.error();
  if (!state_.ended.contains(id))
    return Conflict("sweep " + ToString(id) + " ended too long ago: only the last " +
                    std::to_string(kReopenableSweeps) +
                    " can be opened again; start a new sweep with its best configurations as "
                    "initial_points");
  if (Status read = ReadEnded(state_, id, opened); !read.ok()) return read.error();
  return &opened;
}

Status Decider::CheckExists(SweepId id) const {
  if (id.value >= 1 && id <= state_.last_sweep && !state_.deleted.contains(id)) return {};
  return NotFound("there is no sweep " + ToString(id) +
                  (state_.deleted.contains(id) ? " any more: it was deleted" : ""));
}

Status Decider::CheckStays(SweepId id) const {
  if (Status exists = CheckExists(id); !exists.ok()) return exists;
  if (!state_.deletions.contains(id)) return {};
  return Conflict("sweep " + ToString(id) +
                  " is about to be deleted; undo this first, `attune sweep undelete " +
                  ToString(id) + "`");
}

Status Decider::CheckExists(const Sweep& sweep, const TrialId& trial) {
  if (trial.number.value >= static_cast<uint32_t>(sweep.created))
    return NotFound("there is no trial " + ToString(trial));
  return {};
}

Status Decider::CheckCanStart(const Sweep& sweep) {
  if (sweep.stopping_as)
    return Conflict("sweep " + ToString(sweep.id) +
                    " is ending and starts no more trials: " + sweep.reason);
  return {};
}

Status Decider::CheckSameBody(const std::string& earlier, const std::string& repeated) {
  if (earlier == repeated) return {};
  return Error{ErrorCode::kInvalid,
               "Idempotency-Key: an earlier request with this key had another body; use a new key"};
}

// ---- the entry points ------------------------------------------------------------------------

Result<std::vector<Fact>> Decide(const State& state, const Command& command, Time now) {
  Decider decider(state, now);
  if (Status status = std::visit(decider, command); !status.ok()) return status.error();
  return decider.TakeFacts();
}

bool NeedsSecondDecision(const Command& command, const std::vector<Fact>& facts) {
  return std::holds_alternative<AskTrial>(command) && !facts.empty() &&
         (std::holds_alternative<TrialCreated>(facts.back()) ||
          std::holds_alternative<TrialPromoted>(facts.back()));
}

}  // namespace attune
