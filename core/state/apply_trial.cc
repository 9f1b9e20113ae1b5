#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "base/check.h"
#include "core/state/applier.h"
#include "core/state/retention.h"
#include "core/state/stoppers.h"

namespace attune {
namespace {

constexpr double kGapDecay = 0.9;  // the factor of the longest gap with each report

// The longest gap between two reports of an attempt; older gaps fade.
Seconds UpdateLongestGap(Seconds longest, Seconds report, Seconds before) {
  const double gap = report.value - before.value;
  const double faded = kGapDecay * longest.value;
  return Seconds(std::isfinite(gap) ? std::max(gap, faded) : faded);
}

}  // namespace

// ---- trials ------------------------------------------------------------------------------

void Applier::operator()(const TrialCreated& fact) {
  Sweep& sweep = SweepAt(fact.trial.sweep);
  ATTUNE_CHECK(fact.trial.number.value == static_cast<uint32_t>(sweep.created));
  Trial& trial = sweep.trials[fact.trial.number];
  trial.id = fact.trial;
  trial.config = fact.config;
  trial.patch = fact.patch;
  trial.requested = fact.origin == kEnqueued;
  ++sweep.created;
  if (fact.origin == kInitialPoints) ++sweep.points_used;
  if (fact.thought) sweep.thinking.reset();
  if (fact.proposal) sweep.next_proposal = ProposalNumber(fact.proposal->value + 1);
  Remember(sweep, trial, fact.idempotency_key);
  ++sweep.by_state[static_cast<size_t>(trial.state)];
  sweep.pending.insert(trial.id.number);
}

void Applier::operator()(const TrialReopened& fact) {
  Sweep& sweep = SweepAt(fact.record.id.sweep);
  const auto [place, absent] = sweep.trials.try_emplace(fact.record.id.number);
  Trial& trial = place->second;
  if (absent) {
    trial.id = fact.record.id;
    trial.config = fact.record.config;
    if (fact.record.patch) trial.patch = *fact.record.patch;
    trial.state = fact.record.state;
    trial.attempts = fact.record.attempts;
    trial.last_step = fact.record.last_step;
    trial.seconds = fact.record.seconds;
  }
  // A record does not say which checkpoints are unreported.
  std::vector<KeptCheckpoint> checkpoints = fact.record.checkpoints;
  for (KeptCheckpoint& kept : checkpoints) {
    const auto known = std::ranges::find_if(trial.checkpoints, [&](const KeptCheckpoint& each) {
      return each.attempt == kept.attempt && each.ref.step == kept.ref.step;
    });
    kept.unreported = known != trial.checkpoints.end() && known->unreported;
  }
  trial.checkpoints = std::move(checkpoints);
  if (fact.from_start) {
    trial.earlier_attempts = trial.attempts;
    trial.last_step = Step(0);
    trial.best.clear();
  }
  trial.failures = 0;
  trial.filled_disk = false;
  trial.avoided.clear();
  trial.since_best = 0;
  trial.plateau_state = {};
  trial.milestone = Step(0);
  trial.until = fact.until;
  trial.requested = true;
  trial.paused_with_sweep = false;
  RemovePending(sweep, trial);
  trial.not_before = now_;
  trial.yield_verdict.reset();
  SetState(trial, TrialState::kPending);
  Review(sweep, trial.id.number);
}

void Applier::operator()(const AttemptAssigned& fact) {
  Sweep& sweep = SweepAt(fact.attempt.trial.sweep);
  Trial& trial = TrialAt(fact.attempt.trial);
  ATTUNE_CHECK(!trial.live);
  trial.live = Attempt{.id = fact.attempt,
                       .epoch = fact.epoch,
                       .ranks = fact.ranks,
                       .resume = fact.resume,
                       .assigned_at = now_};
  if (fact.ranks.empty()) trial.live->lease = fact.lease.value > 0 ? fact.lease : kAskedLease;
  Renew(sweep, trial);
  trial.attempts = fact.attempt.number;
  trial.milestone = fact.milestone;
  state_.last_epoch = fact.epoch;
  sweep.live.insert(trial.id.number);
  if (const auto grows = MayGrowFrom(sweep.spec, *trial.live))
    sweep.small.emplace(*grows, trial.id.number);
  Remember(sweep, trial, fact.idempotency_key);
  SetState(trial, TrialState::kRunning);
  for (const RankSlot& slot : fact.ranks) Occupy(sweep, trial, slot);
  if (!fact.ranks.empty() && state_.reservation && state_.reservation->sweep == sweep.id)
    EndReservation();
  if (fact.resume) Review(sweep, trial.id.number);
}

void Applier::operator()(const AttemptRenewed& fact) {
  Renew(SweepAt(fact.attempt.trial.sweep), TrialAt(fact.attempt.trial));
}

void Applier::operator()(const AttemptStarted& fact) {
  TrialAt(fact.attempt.trial).live->state = AttemptState::kRunning;
}

void Applier::operator()(const AttemptFirstStep& fact) {
  Attempt& live = *TrialAt(fact.attempt.trial).live;
  live.stepped = true;
  for (const RankSlot& slot : live.ranks) {
    const auto executor = state_.executors.find(slot.executor);
    if (executor != state_.executors.end()) executor->second.gang_history.worked = true;
  }
}

void Applier::operator()(const RendezvousOpened& fact) {
  TrialAt(fact.attempt.trial).live->rendezvous = fact.rendezvous;
}

void Applier::operator()(const TrialReported& fact) {
  Sweep& sweep = SweepAt(fact.attempt.trial.sweep);
  Trial& trial = TrialAt(fact.attempt.trial);
  sweep.reported = true;
  sweep.finite = sweep.finite || std::ranges::all_of(sweep.spec.objectives, [&](const auto& each) {
                   return std::isfinite(each.ValueIn(fact.report.metrics));
                 });
  sweep.early_failures = {};
  Renew(sweep, trial);
  trial.last_step = fact.report.step;
  trial.live->unwaited_step = fact.report.waits ? Step(0) : fact.report.step;
  sweep.report_gap = UpdateLongestGap(sweep.report_gap, fact.report.seconds, trial.live->seconds);
  trial.live->seconds = fact.report.seconds;
  ++trial.since_best;
  NoteBest(sweep.spec, fact.report, trial);
  if (const auto& plateau = sweep.spec.stop.plateau)
    trial.plateau_state = AdvancePlateau(*plateau, fact.report, std::move(trial.plateau_state));
  auto values = ValuesThatCount(sweep.spec.objectives, sweep.spec.constraints, fact.report.metrics);
  NoteReported(sweep, trial);
  if (!values.empty())
    CountReport(sweep, trial,
                {trial.id.number, fact.attempt.number, fact.report.step, std::move(values)});
}

void Applier::operator()(const MetricsLogged& fact) {
  TrialAt(fact.attempt.trial).live->logged = fact.number;
}

void Applier::operator()(const TrialYielding& fact) {
  std::optional<Verdict>& yield = TrialAt(fact.trial).yield_verdict;
  yield.reset();
  if (fact.verdict.kind != VerdictKind::kContinue) yield = fact.verdict;
}

void Applier::operator()(const TrialDecided& fact) {
  Sweep& sweep = SweepAt(fact.attempt.trial.sweep);
  Trial& trial = TrialAt(fact.attempt.trial);
  Renew(sweep, trial);
  trial.live->verdict = fact.verdict.kind;
  trial.live->verdict_step = fact.step;
  trial.milestone = fact.milestone;
  if (fact.verdict.kind == VerdictKind::kPause) {
    trial.paused_with_sweep = IsOrder(fact.verdict.reason.rule);
    SetState(trial, TrialState::kPaused);
  }
  if (fact.verdict.kind == VerdictKind::kExploit) {
    trial.config = fact.verdict.config;
    Clone(sweep, trial, fact.verdict.donor.trial.number, **fact.cloned);
  }
  if (fact.verdict.kind != VerdictKind::kContinue) trial.yield_verdict.reset();
}

void Applier::operator()(const TrialPromoted& fact) {
  Sweep& sweep = SweepAt(fact.trial.sweep);
  Trial& trial = TrialAt(fact.trial);
  if (fact.config) trial.config = *fact.config;
  if (fact.donor) Clone(sweep, trial, fact.donor->trial.number, **fact.cloned);
  trial.not_before = now_;
  SetState(trial, TrialState::kPending);
}

void Applier::operator()(const AttemptPartEnded& fact) {
  Sweep& sweep = SweepAt(fact.attempt.trial.sweep);
  Trial& trial = TrialAt(fact.attempt.trial);
  Attempt& live = *trial.live;
  for (const RankSlot& slot : live.ranks) {
    if (slot.executor == fact.executor) Release(sweep, trial, slot);
  }
  live.ended_parts.insert(fact.executor);
  live.NotePartEnd(fact.outcome, fact.failure);
}

void Applier::operator()(const AttemptEnded& fact) {
  Sweep& sweep = SweepAt(fact.attempt.trial.sweep);
  Trial& trial = TrialAt(fact.attempt.trial);
  for (const RankSlot& slot : trial.live->ranks) {
    if (!trial.live->ended_parts.contains(slot.executor)) Release(sweep, trial, slot);
  }
  trial.seconds.value += trial.live->seconds.value;
  if (fact.outcome == Outcome::kFailed && trial.state == TrialState::kRunning &&
      CountsAsRestart(sweep.spec, trial, fact.failure)) {
    ++trial.failures;
    if (!sweep.reported) sweep.early_failures.Note(trial.id.number, fact.failure);
  }
  if (fact.failure.kind == FailureKind::kDisk) trial.filled_disk = true;
  if (fact.failure.kind == FailureKind::kEnvironment)
    sweep.failed_builds.try_emplace(fact.failure.executor, now_);
  NoteGangHistory(*trial.live, fact);
  sweep.leases.erase({trial.live->lease_until, trial.id.number});
  if (const auto grows = MayGrowFrom(sweep.spec, *trial.live))
    sweep.small.erase({*grows, trial.id.number});
  trial.live.reset();
  if (HasEnded(trial.state)) ReleaseDonor(sweep, trial);
  sweep.live.erase(trial.id.number);
  UpdateQueues(sweep, trial);
  Review(sweep, trial.id.number);
}

void Applier::operator()(const TrialRequeued& fact) {
  Trial& trial = TrialAt(fact.trial);
  RemovePending(SweepAt(fact.trial.sweep), trial);
  trial.not_before = fact.not_before;
  const auto avoided = state_.executors.find(fact.avoided);
  if (avoided != state_.executors.end()) trial.avoided[fact.avoided] = avoided->second.incarnation;
  trial.paused_with_sweep = false;
  // A new attempt makes a pause or a resize needless.
  if (trial.yield_verdict && trial.yield_verdict->kind != VerdictKind::kStop)
    trial.yield_verdict.reset();
  SetState(trial, TrialState::kPending);
}

void Applier::operator()(const TrialEnded& fact) {
  Sweep& sweep = SweepAt(fact.trial.sweep);
  Trial& trial = TrialAt(fact.trial);
  SetState(trial, fact.state);
  const bool tried = fact.state == TrialState::kCompleted || fact.state == TrialState::kStopped;
  const bool best =
      std::ranges::find(sweep.front, trial.id.number, &Best::trial) != sweep.front.end();
  if (tried && !best) ++sweep.since_best;
  trial.yield_verdict.reset();
  if (!trial.live) ReleaseDonor(sweep, trial);
  Review(sweep, trial.id.number);
}

// ---- checkpoints -------------------------------------------------------------------------

void Applier::operator()(const CheckpointSaved& fact) {
  Sweep& sweep = SweepAt(fact.attempt.trial.sweep);
  Trial& trial = TrialAt(fact.attempt.trial);
  Renew(sweep, trial);
  KeptCheckpoint kept{.attempt = fact.attempt.number,
                      .ref = fact.checkpoint,
                      .unreported = fact.checkpoint.step > trial.last_step};
  if (!trial.live->ranks.empty()) {
    kept.executor = trial.live->ranks.front().executor;
    const auto executor = state_.executors.find(kept.executor);
    if (executor != state_.executors.end()) kept.folder = executor->second.folder;
  }
  const bool reported = !kept.unreported;
  trial.checkpoints.push_back(std::move(kept));
  if (reported) ReleaseDonor(sweep, trial);
  Review(sweep, trial.id.number);
}

void Applier::operator()(const CheckpointPinned& fact) {
  const auto sweep = state_.sweeps.find(fact.checkpoint.trial.sweep);
  if (sweep != state_.sweeps.end()) return SetPinned(sweep->second, fact.checkpoint, fact.pinned);
  const auto ended = state_.ended.find(fact.checkpoint.trial.sweep);
  if (ended != state_.ended.end()) ended->second.pins[fact.checkpoint] = fact.pinned;
}

void Applier::operator()(const CheckpointDropped& fact) {
  if (state_.executors.contains(fact.executor))  // otherwise no executor can delete the files
    state_.removals[fact.executor][fact.checkpoint] = fact.path;
  const auto sweep = state_.sweeps.find(fact.checkpoint.trial.sweep);
  if (sweep != state_.sweeps.end()) {
    ReleaseClones(sweep->second, fact.checkpoint);
    return Remove(sweep->second, fact.checkpoint);
  }
  const auto ended = state_.ended.find(fact.checkpoint.trial.sweep);
  if (ended != state_.ended.end()) ended->second.dropped.insert(fact.checkpoint);
}

void Applier::operator()(const CheckpointStored& fact) {
  const auto sweep = state_.sweeps.find(fact.checkpoint.trial.sweep);
  if (sweep != state_.sweeps.end())
    return SetStored(sweep->second, fact.checkpoint, fact.address, fact.only);
  const auto ended = state_.ended.find(fact.checkpoint.trial.sweep);
  if (ended != state_.ended.end()) ended->second.stored[fact.checkpoint] = fact.address;
}

// A checkpoint that clones still need is dropped only if its files are gone.
void Applier::ReleaseClones(Sweep& sweep, const CheckpointId& donor) {
  for (const TrialNumber number : std::set(sweep.clones)) {
    Trial& clone = *sweep.Find(number);
    if (clone.donor == donor) ReleaseDonor(sweep, clone);
  }
}

void Applier::operator()(const CheckpointRemoved& fact) {
  for (auto holder = state_.removals.begin(); holder != state_.removals.end();) {
    holder->second.erase(fact.checkpoint);
    holder = holder->second.empty() ? state_.removals.erase(holder) : std::next(holder);
  }
}

// ---- helpers --------------------------------------------------------------------------------

void Applier::SetState(Trial& trial, TrialState to) {
  Sweep& sweep = SweepAt(trial.id.sweep);
  --sweep.by_state[static_cast<size_t>(trial.state)];
  ++sweep.by_state[static_cast<size_t>(to)];
  trial.state = to;
  UpdateQueues(sweep, trial);
}

void Applier::UpdateQueues(Sweep& sweep, const Trial& trial) {
  const bool pending = trial.state == TrialState::kPending && !trial.live;
  const bool paused = trial.state == TrialState::kPaused && !trial.live && !trial.paused_with_sweep;
  if (pending) {
    AddPending(sweep, trial);
  } else {
    RemovePending(sweep, trial);
  }
  if (paused) {
    sweep.paused[trial.id.number] = trial.last_step;
  } else {
    sweep.paused.erase(trial.id.number);
  }
}

void Applier::Clone(Sweep& sweep, Trial& trial, TrialNumber donor, const KeptCheckpoint& cloned) {
  ReleaseDonor(sweep, trial);
  trial.donor = {{sweep.id, donor}, cloned.attempt, cloned.ref.step};
  trial.cloned = cloned;
  trial.last_step = cloned.ref.step;
  trial.plateau_state = {};
  sweep.clones.insert(trial.id.number);
}

void Applier::AddPending(Sweep& sweep, const Trial& trial) {
  sweep.pending.insert(trial.id.number);
  if (trial.not_before > now_) sweep.delayed.emplace(trial.not_before, trial.id.number);
}

void Applier::RemovePending(Sweep& sweep, const Trial& trial) {
  sweep.pending.erase(trial.id.number);
  sweep.delayed.erase({trial.not_before, trial.id.number});
}

void Applier::Renew(Sweep& sweep, Trial& trial) const {
  if (trial.live->lease.value <= 0) return;
  sweep.leases.erase({trial.live->lease_until, trial.id.number});
  trial.live->lease_until = Time{now_.us + static_cast<int64_t>(trial.live->lease.value * 1e6)};
  sweep.leases.emplace(trial.live->lease_until, trial.id.number);
}

void Applier::Remember(Sweep& sweep, const Trial& trial, const std::string& idempotency_key) {
  if (!idempotency_key.empty()) sweep.by_key[idempotency_key] = trial.id.number;
}

void Applier::NoteBest(const SweepSpec& spec, const Report& report, Trial& trial) {
  trial.best.resize(spec.objectives.size(), std::numeric_limits<double>::quiet_NaN());
  for (size_t i = 0; i < spec.objectives.size(); ++i) {
    const double value = spec.objectives[i].ValueIn(report.metrics);
    if (!spec.objectives[i].Better(value, trial.best[i])) continue;
    trial.best[i] = value;
    trial.since_best = 0;
  }
}

void Applier::CountReport(Sweep& sweep, Trial& trial, Best report) {
  bool review = false;
  if (!trial.checkpoints.empty()) {
    KeptCheckpoint& newest = trial.checkpoints.back();
    if (newest.attempt == report.attempt && newest.ref.step == report.step) {
      newest.values = report.values;
      review = true;
    }
  }
  NoteReached(sweep, report);
  const FrontChange change = AddToFront(sweep.spec.objectives, std::move(report), sweep.front);
  if (change.joined) {
    sweep.since_best = 0;
    for (const Best& left : change.left) Review(sweep, left.trial);
    review = true;
  }
  if (review) Review(sweep, trial.id.number);
}

// The trial may now resume from checkpoints that were saved up to its newest report.
void Applier::NoteReported(Sweep& sweep, Trial& trial) {
  bool changed = false;
  for (KeptCheckpoint& kept : trial.checkpoints) {
    if (!kept.unreported || kept.attempt != trial.live->id.number ||
        kept.ref.step > trial.last_step)
      continue;
    kept.unreported = false;
    changed = true;
  }
  if (!changed) return;
  ReleaseDonor(sweep, trial);
  Review(sweep, trial.id.number);
}

void Applier::NoteReached(Sweep& sweep, const Best& report) {
  if (!sweep.reached && ReachesTargets(sweep.spec, report.values)) sweep.reached = report;
}

void Applier::ReleaseDonor(Sweep& sweep, Trial& trial) {
  if (!trial.donor) return;
  const TrialNumber donor = trial.donor->trial.number;
  trial.donor.reset();
  trial.cloned.reset();
  sweep.clones.erase(trial.id.number);
  Review(sweep, donor);
}

}  // namespace attune
