#include "core/brain/decide.h"
#include "base/result.h"
#include "core/brain/edit.h"

#include <algorithm>
#include <utility>

#include "core/brain/consequences.h"
#include "core/brain/drain.h"
#include "core/brain/executors.h"
#include "core/brain/next_trial.h"
#include "core/brain/record.h"
#include "core/log/request_key.h"
#include "core/space/draw.h"
#include "core/state/ended.h"
#include "core/state/origin.h"
#include "core/state/retention.h"
#include "core/state/shared_state.h"
#include "core/state/stoppers.h"

namespace attune {
namespace {

Error NotFound(std::string message) { return {ErrorCode::kNotFound, std::move(message)}; }
Error Conflict(std::string message) { return {ErrorCode::kConflict, std::move(message)}; }

// The lost part of the log has used fewer epochs than this. Two restores of the same backup continue
// at different epochs, because their identities differ.
constexpr uint64_t kEpochsLostMax = uint64_t{1} << 32;

Epoch EpochAfterRestore(const State& state, LogIdentity identity) {
  return Epoch(state.last_epoch.value + kEpochsLostMax + identity.value % kEpochsLostMax);
}

// Decides on one command. The facts that it has collected are not applied yet.
class Decider {
 public:
  Decider(const State& state, Time now) : state_(state), now_(now) {}

  // ---- sweeps ------------------------------------------------------------------------------

  Status operator()(const CreateSweep& command) {
    if (const auto earlier = FindRequest(state_.by_key, command.idempotency_key);
        earlier != state_.by_key.end())
      return CheckSameBody(earlier->first, command.idempotency_key);
    if (Status made = CheckAlgorithms(*command.spec); !made.ok()) return made;
    if (!std::ranges::equal(command.spec->warm_start, command.warm_start, {}, {}, &WarmStart::from))
      return Error{ErrorCode::kInvalid,
                   "warm_start: the results of these sweeps are not at hand here; create the sweep "
                   "on the server that has them, or remove warm_start"};
    Add(SweepCreated{.sweep = SweepId(state_.last_sweep.value + 1),
                     .spec = command.spec,
                     .source = command.source,
                     .idempotency_key = command.idempotency_key,
                     .owner = command.owner,
                     .warm_start = command.warm_start,
                     .path = command.path});
    return {};
  }

  Status operator()(const PauseSweep& command) {
    const auto sweep = Open(command.sweep);
    if (!sweep.ok()) return sweep.error();
    if (Status starts = CheckStarts(**sweep); !starts.ok()) return starts;
    if ((*sweep)->state == SweepState::kPaused) return {};
    Add(SweepPaused{command.sweep, "paused on request"});
    YieldTrials(**sweep,
                Verdict::Pause({.rule = std::string(kSweepPaused),
                                .text = "saved and left: its sweep was paused"}),
                facts_);
    return {};
  }

  Status operator()(const ResumeSweep& command) {
    const auto sweep = Open(command.sweep);
    if (!sweep.ok()) return sweep.error();
    if ((*sweep)->state != SweepState::kPaused) return {};
    Add(SweepResumed{command.sweep});
    for (const auto& [number, trial] : (*sweep)->trials) {
      if (trial.state == TrialState::kPaused && trial.held)
        Requeue(**sweep, trial, "its sweep was resumed", now_, facts_);
      LeaveDrained(state_, trial, facts_);
    }
    return {};
  }

  Status operator()(const ExtendSweep& command) {
    Sweep opened;
    const auto found = OpenOrEnded(command.sweep, opened);
    if (!found.ok()) return found.error();
    SweepSpec spec = (*found)->spec;
    if (command.max_trials) spec.stop.max_trials = *command.max_trials;
    if (command.max_time) spec.stop.max_time = *command.max_time;
    if (command.max_gpu_hours) spec.stop.max_gpu_hours = *command.max_gpu_hours;
    if (command.max_step) spec.max_step = *command.max_step;
    return Edit(**found, *found == &opened, std::move(spec),
                {.reason = "extended on request", .stop = "", .max_step = "max_step"});
  }

  Status operator()(const EditSweep& command) {
    Sweep opened;
    const auto found = OpenOrEnded(command.sweep, opened);
    if (!found.ok()) return found.error();
    if ((*found)->edited > command.seen)
      return Conflict("sweep " + ToString(command.sweep) +
                      " has been edited since it was looked at: look at it again, then try again");
    return Edit(**found, *found == &opened, *command.spec, {});
  }

  Status operator()(const StopSweep& command) {
    const auto sweep = Open(command.sweep);
    if (!sweep.ok()) return sweep.error();
    if (!(*sweep)->stopping_as)
      WindDown(**sweep, SweepState::kStopped, "the sweep was stopped on request",
               TrialState::kKilled, facts_);
    return {};
  }

  Status operator()(const KillSweep& command) {
    const auto sweep = Open(command.sweep);
    if (!sweep.ok()) return sweep.error();
    if ((*sweep)->stopping_as == SweepState::kKilled) return {};
    Add(SweepStopping{command.sweep, SweepState::kKilled, "the sweep was killed on request"});
    KillTrials(**sweep, "killed with its sweep", nullptr, facts_);
    return {};
  }

  Status operator()(const DeleteSweep& command) {
    if (Status exists = CheckExists(command.sweep); !exists.ok()) return exists;
    const std::string id = ToString(command.sweep);
    if (state_.Find(command.sweep) != nullptr)
      return Conflict("sweep " + id + " has not ended: kill it first, `attune sweep kill " + id +
                      "`, or wait for its end");
    if (ChangedSince(command.seen,
                     [&](const TrialId& trial) { return trial.sweep == command.sweep; }))
      return Conflict("sweep " + id + " has changed since it was looked at: try again");
    const auto ended = state_.ended.find(command.sweep);
    Add(SweepDeleted{command.sweep, SharedOf(state_, command.sweep),
                     ended == state_.ended.end() ? "" : ended->second.idempotency_key});
    return {};
  }

  Status operator()(const Propose& command) {
    const Sweep* sweep = state_.Find(command.sweep);
    const bool due = sweep != nullptr && sweep->thinking && MayCreate(*sweep) &&
                     sweep->thinking->position == command.position &&
                     sweep->thinking->proposal == command.proposal;
    if (due) EndThought(*sweep, command.suggestion, facts_);
    return {};
  }

  // ---- trials ------------------------------------------------------------------------------

  Status operator()(const EnqueueTrial& command) {
    const auto found = Open(command.sweep);
    if (!found.ok()) return found.error();
    const Sweep& sweep = **found;
    if (const auto earlier = FindRequest(sweep.by_key, command.idempotency_key);
        earlier != sweep.by_key.end())
      return CheckSameBody(earlier->first, command.idempotency_key);
    if (Status starts = CheckStarts(sweep); !starts.ok()) return starts;
    const TrialNumber number(static_cast<uint32_t>(sweep.created));
    RandomStream rest(sweep.spec.seed, number, "trial/enqueued");
    auto config = Complete(sweep.spec.space, command.config, rest);
    if (!config.ok()) return config.error();
    Add(TrialCreated{.trial = {sweep.id, number},
                     .config = std::move(config).value(),
                     .origin = std::string(kEnqueued),
                     .idempotency_key = command.idempotency_key,
                     .rationale = Rationale{.rule = std::string(kEnqueued),
                                            .text = "a configuration of a person's own"}});
    return {};
  }

  Status operator()(const KillTrial& command) {
    const auto sweep = Open(command.trial.sweep);
    if (!sweep.ok()) return sweep.error();
    if (Status exists = CheckExists(**sweep, command.trial); !exists.ok()) return exists;
    const Trial* trial = (*sweep)->Find(command.trial.number);
    if (trial == nullptr || Ended(trial->state))
      return Conflict("trial " + ToString(command.trial) + " has already ended");
    EndTrial(*trial, TrialState::kKilled, "killed on request", facts_);
    return {};
  }

  Status operator()(const ReopenTrial& command) {
    const TrialRecord& record = command.record;
    Sweep opened;
    const auto found = OpenOrEnded(record.id.sweep, opened);
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
                      ? "goes on to step " + std::to_string(command.until.value) + " on request"
                      : "tried again on request"};
    if (&sweep == &opened)
      Add(SweepReopened{sweep.id,
                        "trial " + std::to_string(record.id.number.value) + " " + fact.reason});
    Add(std::move(fact));
    return {};
  }

  Status operator()(const AskTrial& command) {
    const auto found = Open(command.sweep);
    if (!found.ok()) return found.error();
    const Sweep& sweep = **found;
    if (!sweep.spec.External())
      return Conflict("sweep " + ToString(sweep.id) +
                      " has a program, which executors run: only a sweep without `command` can be "
                      "asked for trials");
    if (const auto earlier = FindRequest(sweep.by_key, command.idempotency_key);
        earlier != sweep.by_key.end())
      return CheckSameBody(earlier->first, command.idempotency_key);
    if (command.after && IsLive(sweep, *command.after)) return {};
    if (sweep.state == SweepState::kPaused)
      return Conflict("sweep " + ToString(sweep.id) + " is paused: resume it first");
    if (!MayStart(sweep))
      return Conflict("sweep " + ToString(sweep.id) + " has " + std::to_string(sweep.live.size()) +
                      " running trials, as many as max_concurrent_trials allows: tell one first");
    if (!HasNext(sweep, now_)) return {};
    StartNext(state_, sweep, {}, command.idempotency_key, now_, facts_);
    if (facts_.empty()) return {};  // its searcher waits
    if (auto* assigned = std::get_if<AttemptAssigned>(&facts_.back()))
      assigned->lease = command.lease;
    return {};
  }

  Status operator()(const PinCheckpoint& command) {
    const SweepId sweep = command.checkpoint.trial.sweep;
    if (Status exists = CheckExists(sweep); !exists.ok()) return exists;
    Add(CheckpointPinned{command.checkpoint, command.pinned});
    if (command.pinned || !state_.ended.contains(sweep)) return {};
    return DropUnlessKept(command.checkpoint);
  }

  Status operator()(const DropCheckpoint& command) {
    const TrialId& id = command.checkpoint.trial;
    Sweep ended;
    const auto found = OpenOrEnded(id.sweep, ended);
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
      return Conflict("checkpoint " + ToString(command.checkpoint) + " stays: " + need);
    Add(CheckpointDropped{command.checkpoint, one->executor, one->ref.path, "dropped on request"});
    return {};
  }

  // ---- executors ---------------------------------------------------------------------------

  Status operator()(const JoinExecutor& command) {
    return DecideJoin(state_, command, now_, facts_);
  }
  Status operator()(const LoseExecutor& command) {
    DecideLoss(state_, command, now_, facts_);
    return {};
  }
  Status operator()(const SayHealth& command) {
    DecideHealth(state_, command, facts_);
    return {};
  }
  Status operator()(const DrainExecutor& command) { return DecideDrain(state_, command, facts_); }
  Status operator()(const LeaveExecutor& command) {
    DecideLeave(state_, command, facts_);
    return {};
  }

  Status operator()(const ResumeExecutor& command) { return DecideResume(state_, command, facts_); }

  Status operator()(const RecordFact& command) {
    Record(state_, command, now_, facts_);
    return {};
  }

  Status operator()(const RecordRemoval& command) {
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
    Add(CheckpointDropped{command.checkpoint, kept->executor, kept->ref.path,
                          "its files are gone"});
    if (LiesOn(*kept, executor->second)) Add(CheckpointRemoved{command.checkpoint});
    return {};
  }

  Status operator()(const RecordSweepRemoval& command) {
    if (command.identity != IdentityOf(state_)) return {};
    const auto removals = state_.sweep_removals.find(command.folder);
    if (removals != state_.sweep_removals.end() && removals->second.contains(command.sweep))
      Add(SweepRemoved{command.sweep, command.folder, command.executor});
    return {};
  }

  Status operator()(const IdentifyLog& command) {
    if (command.before != IdentityOf(state_)) return {};
    const bool is_first = state_.parts.empty();
    Add(LogIdentified{
        .identity = command.identity,
        .last_epoch = is_first ? state_.last_epoch : EpochAfterRestore(state_, command.identity),
        .last_sweep = is_first ? SweepId(0) : state_.last_sweep,
        .reason = is_first ? "" : command.reason});
    return {};
  }

  Status operator()(const AdjustClock& command) {
    if (command.offset_us != state_.clock_offset_us)
      Add(ClockAdjusted{command.offset_us, command.reason});
    return {};
  }

  Facts Take() { return std::move(facts_); }

 private:
  void Add(Fact fact) { facts_.push_back(std::move(fact)); }

  Status CheckAlgorithms(const SweepSpec& spec) const {
    if (auto searcher = state_.algorithms->MakeSearcher(spec); !searcher.ok())
      return searcher.error();
    if (auto scheduler = state_.algorithms->MakeScheduler(spec); !scheduler.ok())
      return scheduler.error();
    return {};
  }

  // A sweep that has not ended.
  Result<const Sweep*> Open(SweepId id) const {
    if (const Sweep* sweep = state_.Find(id)) return sweep;
    if (Status exists = CheckExists(id); !exists.ok()) return exists.error();
    const auto ended = state_.ended.find(id);
    return Conflict("sweep " + ToString(id) + " has already ended" +
                    (ended == state_.ended.end()
                         ? std::string()
                         : ": it is " + std::string(Name(ended->second.state)) +
                               (ended->second.state == SweepState::kFailed
                                    ? "; it goes on where its failed trials are tried again"
                                    : "")));
  }

  // A sweep that has not ended, or else one that has and can be opened again, read into `opened`.
  Result<const Sweep*> OpenOrEnded(SweepId id, Sweep& opened) const {
    if (const Sweep* sweep = state_.Find(id)) return sweep;
    if (Status exists = CheckExists(id); !exists.ok()) return exists.error();
    if (!state_.ended.contains(id))
      return Conflict("sweep " + ToString(id) + " ended too long ago: only the last " +
                      std::to_string(kReopenableSweeps) +
                      " can be opened again; start a new sweep with its best configurations as "
                      "initial_points");
    if (Status read = ReadEnded(state_, id, opened); !read.ok()) return read.error();
    return &opened;
  }

  // Finds both ended sweeps and others.
  Status CheckExists(SweepId id) const {
    if (id.value >= 1 && id <= state_.last_sweep && !state_.deleted.contains(id)) return {};
    return NotFound("there is no sweep " + ToString(id) +
                    (state_.deleted.contains(id) ? " any more: it was deleted" : ""));
  }

  static Status CheckStarts(const Sweep& sweep) {
    if (sweep.stopping_as)
      return Conflict("sweep " + ToString(sweep.id) +
                      " is ending, and starts nothing more: " + sweep.reason);
    return {};
  }

  static Status CheckExists(const Sweep& sweep, const TrialId& trial) {
    if (trial.number.value >= static_cast<uint32_t>(sweep.created))
      return NotFound("there is no trial " + ToString(trial));
    return {};
  }

  static bool IsLive(const Sweep& sweep, const AttemptId& attempt) {
    const Trial* trial = sweep.Find(attempt.trial.number);
    return trial != nullptr && trial->live && trial->live->id == attempt;
  }

  // A repeated request does nothing. Another body under the same key is an error.
  static Status CheckSameBody(const std::string& earlier, const std::string& repeated) {
    if (earlier == repeated) return {};
    return Error{
        ErrorCode::kInvalid,
        "Idempotency-Key: an earlier request with this key had another body; use a new key"};
  }

  // The words with which the messages of an edit refer to it and to its keys.
  struct EditWords {
    std::string reason = "edited on request";
    std::string stop = "stop.";
    std::string max_step = "scheduler.max";
  };

  Status Edit(const Sweep& sweep, bool ended, SweepSpec spec, const EditWords& words) {
    if (!ended) {
      if (Status starts = CheckStarts(sweep); !starts.ok()) return starts;
    }
    auto changes = Changes(sweep.spec, spec);
    if (!changes.ok()) return changes.error();
    if (Status allowed = CheckEdit(sweep, spec, words); !allowed.ok()) return allowed;
    if (ended) {
      if (Status more = CheckGoesOn(sweep, spec, words); !more.ok()) return more;
      Add(SweepReopened{sweep.id, words.reason});
    } else if (changes->empty()) {
      return {};
    }
    spec.initial_points =
        PointsInside(sweep.spec.initial_points, static_cast<size_t>(sweep.points_used), spec.space);
    Add(SweepEdited{sweep.id, std::move(spec), *std::move(changes)});
    return {};
  }

  Status CheckEdit(const Sweep& sweep, const SweepSpec& spec, const EditWords& words) const {
    if (spec.max_step < sweep.spec.max_step ||
        (sweep.spec.max_step.value == 0) != (spec.max_step.value == 0))
      return Error{ErrorCode::kInvalid,
                   words.max_step + ": " + std::to_string(spec.max_step.value) +
                       " is not beyond the present " + std::to_string(sweep.spec.max_step.value)};
    if (sweep.spec.External() && spec.stop.max_gpu_hours > 0)
      return Error{ErrorCode::kInvalid,
                   words.stop +
                       "max_gpu_hours: the sweep has no program, and uses no GPU that "
                       "Attune knows of"};
    if (Status made = CheckAlgorithms(spec); !made.ok()) return made;
    if (spec.stop.max_trials > 0 && spec.stop.max_trials < sweep.created)
      return Error{ErrorCode::kInvalid, words.stop +
                                            "max_trials: " + std::to_string(spec.stop.max_trials) +
                                            " is below the " + std::to_string(sweep.created) +
                                            " trials that the sweep has already"};
    return {};
  }

  // Returns an error if an ended sweep would do nothing more with this specification.
  static Status CheckGoesOn(const Sweep& sweep, const SweepSpec& spec, const EditWords& words) {
    StopPolicy stop = spec.stop;
    stop.patience = 0;  // counted anew
    stop.targets.clear();
    auto limit = LimitReached(sweep, stop, sweep.running_since);
    for (const Best& report : sweep.front) {
      if (!limit && Reached(spec, report.values)) limit = TargetReached(spec, report);
    }
    if (limit) return Conflict(limit->text + ": raise that limit as well, or start a new sweep");
    if (sweep.exhausted && spec.space == sweep.spec.space)
      return Conflict("the searcher " + sweep.spec.searcher.name +
                      " has no further configuration to try");
    if (spec.stop.max_trials == sweep.created)
      return Error{ErrorCode::kInvalid, words.stop + "max_trials: the sweep has had its " +
                                            std::to_string(sweep.created) +
                                            " trials; ask for more than that"};
    return {};
  }

  static Status CheckReopening(const Sweep& sweep, const ReopenTrial& command) {
    const TrialRecord& record = command.record;
    const Trial* trial = sweep.Find(record.id.number);
    const TrialState state = trial != nullptr ? trial->state : record.state;
    if (!Ended(state))
      return Conflict("trial " + ToString(record.id) + " has not ended: it is " +
                      std::string(Name(state)));
    if (trial != nullptr && trial->live)
      return Conflict("the last attempt of trial " + ToString(record.id) +
                      " is still ending: try again in a moment");
    if (sweep.spec.External() && command.from_start)
      return Error{ErrorCode::kInvalid, "from_start: the sweep has no program to start"};
    const bool beyond = command.until > record.last_step;
    if (command.until.value > 0 && (!beyond || command.from_start))
      return Error{ErrorCode::kInvalid,
                   "until: step " + std::to_string(command.until.value) +
                       (beyond ? " goes on from the newest checkpoint, not from the start"
                               : " is not beyond step " + std::to_string(record.last_step.value) +
                                     ", which trial " + ToString(record.id) + " has reached")};
    if (command.until.value == 0 && state == TrialState::kCompleted && !command.from_start)
      return Conflict("trial " + ToString(record.id) +
                      " is complete: let it go on to a later step, or start it anew");
    return {};
  }

  // Whether the record of a trial for which `concerns` is true may have changed after `seen`.
  template <class Concerns>
  bool ChangedSince(EventSeq seen, Concerns concerns) const {
    const auto later = std::ranges::upper_bound(state_.changes, seen, {}, &RecordChange::seq);
    return seen < state_.changes_after ||
           std::ranges::any_of(later, state_.changes.end(), concerns, &RecordChange::trial);
  }

  Status CheckCurrent(const TrialRecord& record) const {
    if (!ChangedSince(record.seen, [&](const TrialId& trial) { return trial == record.id; }))
      return {};
    return Conflict("trial " + ToString(record.id) +
                    " has changed since it was looked at: look at it again, then try again");
  }

  // Drops an unpinned checkpoint of an ended sweep if nothing else keeps it. Advance does not do this
  // for ended sweeps.
  Status DropUnlessKept(const CheckpointId& id) {
    Sweep ended;
    if (Status read = ReadEnded(state_, id.trial.sweep, ended); !read.ok()) return read;
    SetPinned(ended, id, false);
    const KeptCheckpoint* kept = ended.Find(id);
    if (kept != nullptr && OnlyRetained(ended, id))
      Add(CheckpointDropped{id, kept->executor, kept->ref.path,
                            "it is no longer pinned, and nothing else refers to it"});
    return {};
  }

  const State& state_;
  const Time now_;
  Facts facts_;
};

}  // namespace

Result<std::vector<Fact>> Decide(const State& state, const Command& command, Time now) {
  Decider decider(state, now);
  if (Status status = std::visit(decider, command); !status.ok()) return status.error();
  return decider.Take();
}

bool GoesOn(const Command& command, const std::vector<Fact>& facts) {
  return std::holds_alternative<AskTrial>(command) && !facts.empty() &&
         (std::holds_alternative<TrialCreated>(facts.back()) ||
          std::holds_alternative<TrialPromoted>(facts.back()));
}

}  // namespace attune
