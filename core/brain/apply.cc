#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/brain/retention.h"
#include "core/brain/snapshot.h"
#include "core/brain/state.h"
#include "core/brain/stoppers.h"

namespace attune {
namespace {

// Changes the state by one fact; searchers and schedulers are told by Apply.
class Applier {
 public:
  Applier(State& state, Time now) : state_(state), now_(now) {}

  // ---- sweeps ------------------------------------------------------------------------------

  void operator()(const SweepCreated& fact) {
    Sweep& sweep = state_.sweeps[fact.sweep];
    sweep.id = fact.sweep;
    sweep.spec = fact.spec;
    state_.algorithms->Complete(sweep.spec);
    sweep.idempotency_key = fact.idempotency_key;
    sweep.owner = fact.owner;
    sweep.running_since = now_;
    MakeAlgorithms(sweep);
    if (!fact.idempotency_key.empty()) state_.by_key[fact.idempotency_key] = fact.sweep;
    state_.last_sweep = fact.sweep;
  }

  void operator()(const SweepPaused& fact) {
    Sweep& sweep = SweepAt(fact.sweep);
    sweep.state = SweepState::kPaused;
    sweep.ran_us += now_.us - sweep.running_since.us;
  }

  void operator()(const SweepResumed& fact) {
    Sweep& sweep = SweepAt(fact.sweep);
    sweep.state = SweepState::kRunning;
    sweep.running_since = now_;
    for (TrialNumber number : sweep.live) {
      Trial& trial = *sweep.Find(number);
      if (trial.yield && trial.yield->kind == VerdictKind::kPause) trial.yield.reset();
    }
  }

  void operator()(const SweepExtended& fact) {
    SweepSpec spec = SweepAt(fact.sweep).spec;
    spec.stop = fact.stop;
    spec.max_step = fact.max_step;
    Edit(fact.sweep, std::move(spec));
  }

  void operator()(const SweepEdited& fact) { Edit(fact.sweep, fact.spec); }

  void operator()(const SweepReopened& fact) {
    EndedSweep& ended = state_.ended.at(fact.sweep);
    Sweep& sweep = state_.sweeps[fact.sweep];
    const Status loaded = LoadSweep(ended.saved, *state_.algorithms, sweep);
    ATTUNE_CHECK(loaded.ok());
    sweep.state = SweepState::kRunning;
    sweep.running_since = now_;
    std::erase(state_.reopenable, fact.sweep);
    state_.ended.erase(fact.sweep);
  }

  void operator()(const SweepStopping& fact) {
    Sweep& sweep = SweepAt(fact.sweep);
    sweep.stopping_as = fact.outcome;
    sweep.thinking.reset();
    sweep.reason = fact.reason;
  }

  void operator()(const SweepEnded& fact) {
    Sweep& sweep = SweepAt(fact.sweep);
    if (sweep.state != SweepState::kPaused) sweep.ran_us += now_.us - sweep.running_since.us;
    sweep.state = fact.state;
    sweep.reason = fact.reason;
    sweep.thinking.reset();
    state_.ended[fact.sweep] = {
        .state = fact.state, .idempotency_key = sweep.idempotency_key, .saved = SaveSweep(sweep)};
    state_.sweeps.erase(fact.sweep);
    state_.reopenable.push_back(fact.sweep);
    if (state_.reopenable.size() > kReopenableSweeps) {
      state_.ended.at(state_.reopenable.front()).saved = {};
      state_.reopenable.pop_front();
    }
  }

  void operator()(const ProposalBegun&) {}  // the searcher is saved once it has seen it
  void operator()(const SearchWaits& fact) { SweepAt(fact.sweep).thinking.reset(); }

  void operator()(const SearchExhausted& fact) {
    Sweep& sweep = SweepAt(fact.sweep);
    sweep.exhausted = true;
    sweep.thinking.reset();
    if (sweep.reason.empty()) sweep.reason = fact.reason;
  }

  // ---- trials ------------------------------------------------------------------------------

  void operator()(const TrialCreated& fact) {
    Sweep& sweep = SweepAt(fact.trial.sweep);
    ATTUNE_CHECK(fact.trial.number.value == static_cast<uint32_t>(sweep.created));
    Trial& trial = sweep.trials[fact.trial.number];
    trial.id = fact.trial;
    trial.config = fact.config;
    trial.requested = fact.origin == kEnqueued;
    ++sweep.created;
    if (fact.origin == kInitialPoints) ++sweep.points_used;
    if (fact.thought) sweep.thinking.reset();
    if (fact.proposal) sweep.next_proposal = ProposalNumber(fact.proposal->value + 1);
    Remember(sweep, trial, fact.idempotency_key);
    ++sweep.by_state[static_cast<size_t>(trial.state)];
    sweep.pending.insert(trial.id.number);
  }

  void operator()(const TrialReopened& fact) {
    Sweep& sweep = SweepAt(fact.record.id.sweep);
    const auto [place, absent] = sweep.trials.try_emplace(fact.record.id.number);
    Trial& trial = place->second;
    if (absent) {
      trial.id = fact.record.id;
      trial.config = fact.record.config;
      trial.state = fact.record.state;
      trial.attempts = fact.record.attempts;
      trial.last_step = fact.record.last_step;
      trial.seconds = fact.record.seconds;
    }
    trial.checkpoints = fact.record.checkpoints;
    if (fact.from_start) {
      trial.last_step = Step(0);
      trial.best.clear();
    }
    trial.failures = 0;
    trial.since_best = 0;
    trial.milestone = Step(0);
    trial.until = fact.until;
    trial.requested = true;
    trial.held = false;
    RemovePending(sweep, trial);
    trial.not_before = now_;
    trial.yield.reset();
    Move(trial, TrialState::kPending);
  }

  void operator()(const AttemptAssigned& fact) {
    Sweep& sweep = SweepAt(fact.attempt.trial.sweep);
    Trial& trial = TrialAt(fact.attempt.trial);
    ATTUNE_CHECK(!trial.live);
    trial.live = Attempt{.id = fact.attempt,
                         .epoch = fact.epoch,
                         .ranks = fact.ranks,
                         .resume = fact.resume,
                         .decided = now_};
    if (fact.ranks.empty()) trial.live->lease = fact.lease.value > 0 ? fact.lease : kAskedLease;
    Renew(sweep, trial);
    trial.attempts = fact.attempt.number;
    trial.milestone = fact.milestone;
    state_.last_epoch = fact.epoch;
    sweep.live.insert(trial.id.number);
    Remember(sweep, trial, fact.idempotency_key);
    Move(trial, TrialState::kRunning);
    for (const RankSlot& slot : fact.ranks) Occupy(sweep, trial, slot);
    if (!fact.ranks.empty() && state_.reservation && state_.reservation->sweep == sweep.id)
      EndReservation();
  }

  void operator()(const AttemptRenewed& fact) {
    Renew(SweepAt(fact.attempt.trial.sweep), TrialAt(fact.attempt.trial));
  }

  void operator()(const AttemptStarted& fact) {
    TrialAt(fact.attempt.trial).live->state = AttemptState::kRunning;
  }

  void operator()(const AttemptFirstStep& fact) {
    TrialAt(fact.attempt.trial).live->stepped = true;
  }

  void operator()(const TrialReported& fact) {
    Sweep& sweep = SweepAt(fact.attempt.trial.sweep);
    Trial& trial = TrialAt(fact.attempt.trial);
    sweep.reported = true;
    Renew(sweep, trial);
    trial.last_step = fact.report.step;
    trial.live->seconds = fact.report.seconds;
    ++trial.since_best;
    NoteBest(sweep.spec, fact.report, trial);
    auto values =
        ValuesThatCount(sweep.spec.objectives, sweep.spec.constraints, fact.report.metrics);
    if (!values.empty())
      Count(sweep, trial,
            {trial.id.number, fact.attempt.number, fact.report.step, std::move(values)});
  }

  void operator()(const TrialYielding& fact) { TrialAt(fact.trial).yield = fact.verdict; }

  void operator()(const TrialDecided& fact) {
    Sweep& sweep = SweepAt(fact.attempt.trial.sweep);
    Trial& trial = TrialAt(fact.attempt.trial);
    Renew(sweep, trial);
    trial.live->verdict = fact.verdict.kind;
    trial.live->verdict_step = fact.step;
    trial.milestone = fact.milestone;
    if (fact.verdict.kind == VerdictKind::kPause) {
      trial.held = fact.verdict.reason.rule == kSweepPaused;
      Move(trial, TrialState::kPaused);
    }
    if (fact.verdict.kind == VerdictKind::kExploit) {
      trial.config = fact.verdict.config;
      Clone(sweep, trial, fact.verdict.donor.trial.number, *fact.cloned);
    }
    if (fact.verdict.kind != VerdictKind::kContinue) trial.yield.reset();
  }

  void operator()(const TrialPromoted& fact) {
    Sweep& sweep = SweepAt(fact.trial.sweep);
    Trial& trial = TrialAt(fact.trial);
    if (fact.config) trial.config = *fact.config;
    if (fact.donor) Clone(sweep, trial, fact.donor->trial.number, *fact.cloned);
    trial.not_before = now_;
    Move(trial, TrialState::kPending);
  }

  void operator()(const AttemptPartEnded& fact) {
    Sweep& sweep = SweepAt(fact.attempt.trial.sweep);
    Trial& trial = TrialAt(fact.attempt.trial);
    Attempt& live = *trial.live;
    for (const RankSlot& slot : live.ranks) {
      if (slot.executor == fact.executor) Release(sweep, trial, slot);
    }
    live.gone.insert(fact.executor);
    if (live.fell != Outcome::kFinished) return;
    live.fell = fact.outcome;
    live.failure = fact.failure;
  }

  void operator()(const AttemptEnded& fact) {
    Sweep& sweep = SweepAt(fact.attempt.trial.sweep);
    Trial& trial = TrialAt(fact.attempt.trial);
    for (const RankSlot& slot : trial.live->ranks) {
      if (!trial.live->gone.contains(slot.executor)) Release(sweep, trial, slot);
    }
    trial.seconds.value += trial.live->seconds.value;
    if (fact.outcome == Outcome::kFailed && fact.failure.kind != FailureKind::kLease &&
        trial.state == TrialState::kRunning)
      ++trial.failures;
    sweep.leases.erase({trial.live->lease_until, trial.id.number});
    trial.live.reset();
    if (Ended(trial.state)) LetGoOfDonor(sweep, trial);
    sweep.live.erase(trial.id.number);
    Place(sweep, trial);
    Review(sweep, trial.id.number);
  }

  void operator()(const TrialRequeued& fact) {
    Trial& trial = TrialAt(fact.trial);
    RemovePending(SweepAt(fact.trial.sweep), trial);
    trial.not_before = fact.not_before;
    trial.held = false;
    // It starts only when its sweep is no longer paused.
    if (trial.yield && trial.yield->kind == VerdictKind::kPause) trial.yield.reset();
    Move(trial, TrialState::kPending);
  }

  void operator()(const TrialEnded& fact) {
    Sweep& sweep = SweepAt(fact.trial.sweep);
    Trial& trial = TrialAt(fact.trial);
    Move(trial, fact.state);
    const bool tried = fact.state == TrialState::kCompleted || fact.state == TrialState::kStopped;
    const bool best =
        std::ranges::find(sweep.front, trial.id.number, &Best::trial) != sweep.front.end();
    if (tried && !best) ++sweep.since_best;
    trial.yield.reset();
    if (!trial.live) LetGoOfDonor(sweep, trial);
    Review(sweep, trial.id.number);
  }

  // ---- checkpoints -------------------------------------------------------------------------

  void operator()(const CheckpointSaved& fact) {
    Sweep& sweep = SweepAt(fact.attempt.trial.sweep);
    Trial& trial = TrialAt(fact.attempt.trial);
    Renew(sweep, trial);
    KeptCheckpoint kept{.attempt = fact.attempt.number, .ref = fact.checkpoint};
    if (!trial.live->ranks.empty()) {
      kept.executor = trial.live->ranks.front().executor;
      const auto executor = state_.executors.find(kept.executor);
      if (executor != state_.executors.end()) kept.folder = executor->second.folder;
    }
    trial.checkpoints.push_back(std::move(kept));
    LetGoOfDonor(sweep, trial);
    Review(sweep, trial.id.number);
  }

  void operator()(const CheckpointPinned& fact) {
    const auto sweep = state_.sweeps.find(fact.checkpoint.trial.sweep);
    if (sweep != state_.sweeps.end()) return Pin(sweep->second, fact);
    EndedSweep& ended = state_.ended.at(fact.checkpoint.trial.sweep);
    if (ended.saved.empty()) return;
    Sweep saved;
    const Status loaded = LoadSweep(ended.saved, *state_.algorithms, saved);
    ATTUNE_CHECK(loaded.ok());
    Pin(saved, fact);
    ended.saved = SaveSweep(saved);
  }

  void operator()(const CheckpointDropped& fact) {
    if (state_.executors.contains(fact.executor))  // else nobody is left to delete it
      state_.removals[fact.executor][fact.checkpoint] = fact.path;
    Sweep& sweep = SweepAt(fact.checkpoint.trial.sweep);
    Trial* trial = sweep.Find(fact.checkpoint.trial.number);
    if (trial == nullptr) return;
    std::erase_if(trial->checkpoints, [&](const KeptCheckpoint& kept) {
      return kept.attempt == fact.checkpoint.attempt && kept.ref.step == fact.checkpoint.step;
    });
    Review(sweep, trial->id.number);
  }

  void operator()(const CheckpointRemoved& fact) {
    for (auto holder = state_.removals.begin(); holder != state_.removals.end();) {
      holder->second.erase(fact.checkpoint);
      holder = holder->second.empty() ? state_.removals.erase(holder) : std::next(holder);
    }
  }

  // ---- slots and executors -----------------------------------------------------------------

  void operator()(const SlotsReserved& fact) {
    Reservation reservation{.sweep = fact.sweep, .since = state_.last_epoch};
    for (const GangPart& part : fact.parts) reservation.workers[part.executor] = part.workers;
    if (fact.parts.empty())
      reservation.workers[fact.executor] = MinWorkers(SweepAt(fact.sweep).spec.gang);
    state_.reservation = std::move(reservation);
    state_.touched.reservation = true;
  }

  void operator()(const ReservationReleased&) { EndReservation(); }

  void operator()(const ExecutorJoined& fact) {
    Executor& executor = state_.executors[fact.name];
    executor = {.name = fact.name,
                .instance = fact.instance,
                .incarnation = fact.incarnation,
                .address = fact.address,
                .folder = fact.folder,
                .host = {.name = fact.name,
                         .total = fact.resources,
                         .cpus_free = fact.resources.cpus,
                         .memory_free = fact.resources.memory_bytes,
                         .spans = fact.spans}};
    if (!fact.folder.empty()) state_.folders[fact.folder].insert(fact.name);
    Touch(fact.name);
    for (int gpu = 0; gpu < fact.resources.gpus; ++gpu) executor.host.gpus_free.push_back(gpu);
    state_.last_incarnation = fact.incarnation;
  }

  void operator()(const ExecutorLost& fact) {
    Executor& executor = state_.executors.at(fact.name);
    executor.lost = true;
    executor.lost_at = now_;
    const auto folder = state_.folders.find(executor.folder);
    if (folder != state_.folders.end()) {
      folder->second.erase(fact.name);
      if (folder->second.empty()) state_.folders.erase(folder);
    }
    Touch(fact.name);
  }

  void operator()(const ExecutorForgotten& fact) {
    state_.executors.erase(fact.name);
    state_.removals.erase(fact.name);
    Touch(fact.name);
  }

 private:
  void Touch(const std::string& executor) {
    if (!state_.touched.all) state_.touched.executors.insert(executor);
  }

  void EndReservation() {
    state_.reservation.reset();
    state_.touched.reservation = true;
  }

  Sweep& SweepAt(SweepId id) {
    const auto found = state_.sweeps.find(id);
    ATTUNE_CHECK(found != state_.sweeps.end());
    return found->second;
  }

  Trial& TrialAt(const TrialId& id) {
    Trial* trial = SweepAt(id.sweep).Find(id.number);
    ATTUNE_CHECK(trial != nullptr);
    return *trial;
  }

  void Pin(Sweep& sweep, const CheckpointPinned& fact) {
    Trial* trial = sweep.Find(fact.checkpoint.trial.number);
    if (trial == nullptr) return;  // what has left keeps all it has
    for (KeptCheckpoint& kept : trial->checkpoints) {
      if (kept.attempt == fact.checkpoint.attempt && kept.ref.step == fact.checkpoint.step)
        kept.pinned = fact.pinned;
    }
    Review(sweep, trial->id.number);
  }

  void Edit(SweepId id, SweepSpec spec) {
    Sweep& sweep = SweepAt(id);
    sweep.spec = std::move(spec);
    state_.algorithms->Complete(sweep.spec);
    sweep.edited = state_.last_seq;
    sweep.stopping_as.reset();
    sweep.exhausted = false;  // the searcher may have more now
    sweep.thinking.reset();   // it does not know of the edit
    sweep.reason.clear();
    sweep.since_best = 0;
    sweep.reached.reset();
    for (const Best& report : sweep.front) NoteReached(sweep, report);
    sweep.searcher->Adapt(sweep.spec);
    sweep.scheduler->Adapt(sweep.spec);
  }

  void MakeAlgorithms(Sweep& sweep) {
    auto searcher = state_.algorithms->MakeSearcher(sweep.spec);
    auto scheduler = state_.algorithms->MakeScheduler(sweep.spec);
    ATTUNE_CHECK(searcher.ok() && scheduler.ok());
    sweep.searcher = std::move(searcher).value();
    sweep.scheduler = std::move(scheduler).value();
  }

  void Move(Trial& trial, TrialState to) {
    Sweep& sweep = SweepAt(trial.id.sweep);
    --sweep.by_state[static_cast<size_t>(trial.state)];
    ++sweep.by_state[static_cast<size_t>(to)];
    trial.state = to;
    Place(sweep, trial);
  }

  // Whether it waits for an attempt, or for a promotion.
  void Place(Sweep& sweep, const Trial& trial) {
    const bool pending = trial.state == TrialState::kPending && !trial.live;
    const bool paused = trial.state == TrialState::kPaused && !trial.live && !trial.held;
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

  void Clone(Sweep& sweep, Trial& trial, TrialNumber donor, const KeptCheckpoint& cloned) {
    LetGoOfDonor(sweep, trial);
    trial.donor = {{sweep.id, donor}, cloned.attempt, cloned.ref.step};
    trial.cloned = cloned;
    trial.last_step = cloned.ref.step;
    sweep.clones.insert(trial.id.number);
  }

  void AddPending(Sweep& sweep, const Trial& trial) {
    sweep.pending.insert(trial.id.number);
    if (trial.not_before > now_) sweep.delayed.emplace(trial.not_before, trial.id.number);
  }

  // REQUIRES: not_before is what it was when the trial was added.
  static void RemovePending(Sweep& sweep, const Trial& trial) {
    sweep.pending.erase(trial.id.number);
    sweep.delayed.erase({trial.not_before, trial.id.number});
  }

  // Whoever asked for it has been heard of.
  void Renew(Sweep& sweep, Trial& trial) const {
    if (trial.live->lease.value <= 0) return;
    sweep.leases.erase({trial.live->lease_until, trial.id.number});
    trial.live->lease_until = Time{now_.us + static_cast<int64_t>(trial.live->lease.value * 1e6)};
    sweep.leases.emplace(trial.live->lease_until, trial.id.number);
  }

  static void Remember(Sweep& sweep, const Trial& trial, const std::string& idempotency_key) {
    if (!idempotency_key.empty()) sweep.by_key[idempotency_key] = trial.id.number;
  }

  // A trial is judged by its objectives alone: a constraint may be met late.
  static void NoteBest(const SweepSpec& spec, const Report& report, Trial& trial) {
    trial.best.resize(spec.objectives.size(), std::numeric_limits<double>::quiet_NaN());
    for (size_t i = 0; i < spec.objectives.size(); ++i) {
      const auto metric = report.metrics.find(spec.objectives[i].metric);
      if (metric == report.metrics.end()) continue;
      if (!spec.objectives[i].Better(metric->second, trial.best[i])) continue;
      trial.best[i] = metric->second;
      trial.since_best = 0;
    }
  }

  // A report of which every objective is finite and every constraint holds.
  void Count(Sweep& sweep, Trial& trial, Best report) {
    bool review = false;
    if (!trial.checkpoints.empty()) {
      KeptCheckpoint& newest = trial.checkpoints.back();
      if (newest.attempt == report.attempt && newest.ref.step == report.step) {
        newest.values = report.values;
        review = true;
      }
    }
    NoteReached(sweep, report);
    const Offered offered = Offer(sweep.spec.objectives, std::move(report), sweep.front);
    if (offered.joined) {
      sweep.since_best = 0;
      for (const Best& left : offered.left) Review(sweep, left.trial);
      review = true;
    }
    if (review) Review(sweep, trial.id.number);
  }

  static void NoteReached(Sweep& sweep, const Best& report) {
    if (!sweep.reached && Reached(sweep.spec, report.values)) sweep.reached = report;
  }

  void LetGoOfDonor(Sweep& sweep, Trial& trial) {
    if (!trial.donor) return;
    const TrialNumber donor = trial.donor->trial.number;
    trial.donor.reset();
    trial.cloned.reset();
    sweep.clones.erase(trial.id.number);
    Review(sweep, donor);
  }

  void Occupy(Sweep& sweep, const Trial& trial, const RankSlot& slot) {
    Executor& executor = state_.executors.at(slot.executor);
    executor.attempts.emplace(trial.live->epoch, trial.id);
    executor.host.cpus_free -= slot.cpus;
    executor.host.memory_free -= slot.memory_bytes;
    for (int gpu : slot.gpus) std::erase(executor.host.gpus_free, gpu);
    Touch(slot.executor);
    sweep.used.cpus += slot.cpus;
    sweep.used.gpus += static_cast<int>(slot.gpus.size());
    sweep.used.memory_bytes += slot.memory_bytes;
  }

  void Release(Sweep& sweep, const Trial& trial, const RankSlot& slot) {
    Touch(slot.executor);
    sweep.gpu_seconds += static_cast<double>(slot.gpus.size()) * 1e-6 *
                         static_cast<double>(now_.us - trial.live->decided.us);
    Executor& executor = state_.executors.at(slot.executor);
    executor.attempts.erase(trial.live->epoch);
    executor.host.cpus_free += slot.cpus;
    executor.host.memory_free += slot.memory_bytes;
    std::vector<int>& gpus = executor.host.gpus_free;
    gpus.insert(gpus.end(), slot.gpus.begin(), slot.gpus.end());
    std::ranges::sort(gpus);
    sweep.used.cpus -= slot.cpus;
    sweep.used.gpus -= static_cast<int>(slot.gpus.size());
    sweep.used.memory_bytes -= slot.memory_bytes;
  }

  State& state_;
  Time now_;
};

}  // namespace

void Apply(State& state, const Event& event) {
  ATTUNE_CHECK(event.seq.value == state.last_seq.value + 1);
  state.last_seq = event.seq;
  state.last_time = event.time;
  std::visit(Applier(state, event.time), event.fact);
  if (ChangesRecord(event.fact)) {
    state.changes.push_back({*TrialOf(event.fact), event.seq});
    if (state.changes.size() > kRecordChanges) state.changes.pop_front();
  }
  const auto id = SweepOf(event.fact);
  if (!id) return;
  if (!state.touched.all) state.touched.sweeps.insert(*id);
  const auto sweep = state.sweeps.find(*id);
  if (sweep == state.sweeps.end()) return;  // it has ended with this event
  sweep->second.searcher->Observe(event);
  sweep->second.scheduler->Observe(event);
  if (!std::holds_alternative<TrialReported>(event.fact)) ReviewRetained(sweep->second);
  sweep->second.search_waits = std::holds_alternative<SearchWaits>(event.fact);
  if (const auto* begun = std::get_if<ProposalBegun>(&event.fact)) {
    ArchiveWriter bytes;
    sweep->second.searcher->Save(bytes);
    sweep->second.thinking = {begun->proposal, event.seq, bytes.Take()};
  }
}

}  // namespace attune
