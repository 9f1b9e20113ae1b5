#include <algorithm>
#include <utility>

#include "base/result.h"
#include "core/brain/consequences.h"
#include "core/brain/decider.h"
#include "core/brain/next_trial.h"
#include "core/log/request_key.h"
#include "core/space/draw.h"
#include "core/state/ended.h"
#include "core/state/retention.h"

// The decisions on commands about trials and checkpoints.
namespace attune {

Status Decider::operator()(const EnqueueTrial& command) {
  const auto found = FindOpen(command.sweep);
  if (!found.ok()) return found.error();
  const Sweep& sweep = **found;
  if (const auto earlier = FindRequest(sweep.by_key, command.idempotency_key);
      earlier != sweep.by_key.end())
    return CheckSameBody(earlier->first, command.idempotency_key);
  if (Status starts = CheckCanStart(sweep); !starts.ok()) return starts;
  const TrialNumber number(static_cast<uint32_t>(sweep.created));
  RandomStream rest(sweep.spec.seed, number, "trial/enqueued");
  auto config = Complete(sweep.spec.space, command.config, rest);
  if (!config.ok()) return config.error();
  if (command.patch &&
      PatchesOf(sweep.spec.space, *config) != PatchesOf(sweep.spec.space, command.config))
    return Error{
        ErrorCode::kInvalid,
        "config: give a value of each parameter that has patches, because the patch of the "
        "trial is applied after them"};
  if (command.patch && sweep.scheduler->MakesClones())
    return Conflict("a trial of a sweep with the scheduler " + sweep.spec.scheduler.name +
                    " cannot have a patch, because trials continue from checkpoints of others");
  Add(TrialCreated{
      .trial = {sweep.id, number},
      .config = std::move(config).value(),
      .origin = std::string(kEnqueued),
      .idempotency_key = command.idempotency_key,
      .rationale = Rationale{.rule = std::string(kEnqueued), .text = "enqueued by a user"},
      .patch = command.patch});
  return {};
}

Status Decider::operator()(const KillTrial& command) {
  const auto sweep = FindOpen(command.trial.sweep);
  if (!sweep.ok()) return sweep.error();
  if (Status exists = CheckExists(**sweep, command.trial); !exists.ok()) return exists;
  const Trial* trial = (*sweep)->Find(command.trial.number);
  if (trial == nullptr || HasEnded(trial->state))
    return Conflict("trial " + ToString(command.trial) + " has already ended");
  EndTrial(*trial, TrialState::kKilled, std::string(kKilledByUser), facts_);
  return {};
}

Status Decider::operator()(const ReopenTrial& command) {
  const TrialRecord& record = command.record;
  Sweep opened;
  const auto found = FindOpenOrEnded(record.id.sweep, opened);
  if (!found.ok()) return found.error();
  const Sweep& sweep = **found;
  if (Status exists = CheckExists(sweep, record.id); !exists.ok()) return exists;
  if (Status allowed = CheckReopening(sweep, command); !allowed.ok()) return allowed;
  if (Status current = CheckCurrent(record); !current.ok()) return current;

  TrialReopened fact{
      .record = record,
      .until = command.until,
      .from_start = command.from_start,
      .reason = command.until.value > 0
                    ? "continues to step " + std::to_string(command.until.value) + " on request"
                    : "retried on request"};
  if (&sweep == &opened)
    Add(SweepReopened{sweep.id,
                      "trial " + std::to_string(record.id.number.value) + " " + fact.reason});
  Add(std::move(fact));
  return {};
}

Status Decider::operator()(const AnnotateTrial& command) {
  const SweepId id = command.trial.sweep;
  if (Status stays = CheckStays(id); !stays.ok()) return stays;
  if (const Sweep* sweep = state_.Find(id)) {
    if (Status exists = CheckExists(*sweep, command.trial); !exists.ok()) return exists;
  }
  if (command.annotation != Annotation{}) Add(TrialAnnotated{command.trial, command.annotation});
  return {};
}

Status Decider::operator()(const AskTrial& command) {
  const auto found = FindOpen(command.sweep);
  if (!found.ok()) return found.error();
  const Sweep& sweep = **found;
  if (!sweep.spec.External())
    return Conflict("sweep " + ToString(sweep.id) +
                    " has a command, so executors run its program; ask for trials only of a sweep "
                    "without command");
  if (const auto earlier = FindRequest(sweep.by_key, command.idempotency_key);
      earlier != sweep.by_key.end())
    return CheckSameBody(earlier->first, command.idempotency_key);
  if (command.after && IsLive(sweep, *command.after)) return {};
  if (sweep.state == SweepState::kPaused)
    return Conflict("sweep " + ToString(sweep.id) + " is paused; resume it first");
  if (!MayStart(sweep))
    return Conflict(
        "sweep " + ToString(sweep.id) + " has " + std::to_string(sweep.live.size()) +
        " running trials, as many as max_concurrent_trials allows; tell the result of one first");
  if (!HasNext(sweep, now_)) return {};
  StartNext(state_, sweep, {}, command.idempotency_key, now_, facts_);
  if (facts_.empty()) return {};  // its searcher waits
  if (auto* assigned = std::get_if<AttemptAssigned>(&facts_.back()))
    assigned->lease = command.lease;
  return {};
}

Status Decider::operator()(const PinCheckpoint& command) {
  const SweepId sweep = command.checkpoint.trial.sweep;
  if (Status stays = CheckStays(sweep); !stays.ok()) return stays;
  Add(CheckpointPinned{command.checkpoint, command.pinned});
  if (command.pinned || !state_.ended.contains(sweep)) return {};
  return DropUnlessKept(command.checkpoint);
}

Status Decider::operator()(const DropCheckpoint& command) {
  const TrialId& id = command.checkpoint.trial;
  Sweep ended;
  const auto found = FindOpenOrEnded(id.sweep, ended);
  if (!found.ok()) return found.error();
  const Trial* live = state_.Find(id);
  const auto& kept = live != nullptr ? live->checkpoints : command.record.checkpoints;
  const auto one = std::ranges::find_if(kept, [&](const KeptCheckpoint& each) {
    return each.attempt == command.checkpoint.attempt && each.ref.step == command.checkpoint.step;
  });
  if (one == kept.end()) return {};
  if (live == nullptr) {
    if (Status current = CheckCurrent(command.record); !current.ok()) return current;
  }
  const std::string need = NeededBy(**found, live, id.number, *one);
  if (!need.empty())
    return Conflict("cannot delete checkpoint " + ToString(command.checkpoint) + ": " + need);
  Add(CheckpointDropped{command.checkpoint, one->executor, one->ref.path, "dropped on request"});
  return {};
}

bool Decider::IsLive(const Sweep& sweep, const AttemptId& attempt) {
  const Trial* trial = sweep.Find(attempt.trial.number);
  return trial != nullptr && trial->live && trial->live->id == attempt;
}

Status Decider::CheckReopening(const Sweep& sweep, const ReopenTrial& command) {
  const TrialRecord& record = command.record;
  const Trial* trial = sweep.Find(record.id.number);
  const TrialState state = trial != nullptr ? trial->state : record.state;
  if (!HasEnded(state))
    return Conflict("trial " + ToString(record.id) + " has not ended: it is " +
                    std::string(Name(state)) + "; wait for its end or kill it first");
  if (trial != nullptr && trial->live)
    return Conflict("the last attempt of trial " + ToString(record.id) +
                    " is still ending; try again in a moment");
  if (sweep.spec.External() && command.from_start)
    return Error{ErrorCode::kInvalid, "from_start: the sweep has no program to start"};
  const bool beyond = command.until > record.last_step;
  if (command.until.value > 0 && (!beyond || command.from_start))
    return Error{ErrorCode::kInvalid,
                 "until: step " + std::to_string(command.until.value) +
                     (beyond ? " needs the newest checkpoint; remove from_start"
                             : " is not after step " + std::to_string(record.last_step.value) +
                                   ", which trial " + ToString(record.id) +
                                   " has reached; give a later step")};
  if (command.until.value == 0 && state == TrialState::kCompleted && !command.from_start)
    return Conflict("trial " + ToString(record.id) +
                    " is complete; continue it to a later step, or retry it from the beginning");
  return {};
}

Status Decider::CheckCurrent(const TrialRecord& record) const {
  if (!ChangedSince(record.seen, [&](const TrialId& trial) { return trial == record.id; }))
    return {};
  return Conflict("trial " + ToString(record.id) +
                  " has changed in the meantime; read it again and retry");
}

Status Decider::DropUnlessKept(const CheckpointId& id) {
  Sweep ended;
  if (Status read = ReadEnded(state_, id.trial.sweep, ended); !read.ok()) return read;
  SetPinned(ended, id, false);
  const KeptCheckpoint* kept = ended.Find(id);
  if (kept != nullptr && IsOnlyRetained(ended, id))
    Add(CheckpointDropped{id, kept->executor, kept->ref.path,
                          "it was unpinned, and nothing else uses it"});
  return {};
}

}  // namespace attune
