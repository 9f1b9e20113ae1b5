#include "tests/sim/checkers/books.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace attune::sim {
namespace {

// The values of the objectives in a report; empty if a value is missing or a constraint is
// violated.
std::vector<double> CountingValues(const SweepSpec& spec, const Metrics& metrics) {
  std::vector<double> values;
  for (const Constraint& bound : spec.constraints) {
    const double value = metrics.contains(bound.metric) ? metrics.at(bound.metric) : NAN;
    if (!std::isfinite(value) || value < bound.min.value_or(value) ||
        value > bound.max.value_or(value))
      return {};
  }
  for (const Objective& objective : spec.objectives) {
    const double value = metrics.contains(objective.metric) ? metrics.at(objective.metric) : NAN;
    if (!std::isfinite(value)) return {};
    values.push_back(value);
  }
  return values;
}

void AddToFront(SweepBook& sweep, BestBook report) {
  const auto dominates = [&](const BestBook& known) {
    return sweep.IsAsGood(known.values, report.values);
  };
  if (std::ranges::any_of(sweep.front, dominates)) return;
  std::erase_if(sweep.front,
                [&](const BestBook& known) { return sweep.IsAsGood(report.values, known.values); });
  sweep.front.push_back(std::move(report));
}

class Recorder {
 public:
  Recorder(Books& books, Time now) : books_(books), now_(now) {}

  void operator()(const SweepCreated& fact) {
    SweepBook& sweep = books_.sweeps[fact.sweep];
    sweep.id = fact.sweep;
    sweep.spec = *fact.spec;
    sweep.key = fact.idempotency_key;
    sweep.owner = fact.owner;
    sweep.running_since = now_;
  }
  void operator()(const SweepPaused& fact) { StopClock(BookOf(fact.sweep), SweepState::kPaused); }
  void operator()(const SweepResumed& fact) { StartClock(BookOf(fact.sweep)); }
  void operator()(const SweepEdited& fact) {
    SweepBook& sweep = BookOf(fact.sweep);
    sweep.spec = *fact.spec;
    sweep.stopping.reset();
    sweep.exhausted = false;
    sweep.thinks.reset();
    ++sweep.edited;
  }
  void operator()(const SweepReopened& fact) {
    SweepBook& sweep = BookOf(fact.sweep);
    ++sweep.reopened;
    for (auto& [name, executor] : books_.executors) executor.excluded.erase(fact.sweep);
    if (sweep.stopping == SweepState::kFailed) sweep.stopping.reset();
    StartClock(sweep);
  }
  void operator()(const SweepStopping& fact) {
    BookOf(fact.sweep).stopping = fact.outcome;
    BookOf(fact.sweep).thinks.reset();
  }
  void operator()(const SweepEnded& fact) { StopClock(BookOf(fact.sweep), fact.state); }
  void operator()(const SweepAnnotated&) {}
  void operator()(const SweepDeletionScheduled& fact) {
    BookOf(fact.sweep).deletion_scheduled = true;
  }
  void operator()(const SweepUndeleted& fact) { BookOf(fact.sweep).deletion_scheduled = false; }
  void operator()(const SweepDeleted& fact) { BookOf(fact.sweep).deleted = true; }
  void operator()(const SweepRemoved&) {}
  void operator()(const SearchExhausted& fact) {
    BookOf(fact.sweep).exhausted = true;
    BookOf(fact.sweep).thinks.reset();
  }
  void operator()(const ProposalBegun& fact) { BookOf(fact.sweep).thinks = fact.proposal; }
  void operator()(const SearchWaits& fact) { BookOf(fact.sweep).thinks.reset(); }

  void operator()(const TrialCreated& fact) {
    TrialBook& trial = BookOf(fact.trial.sweep).trials[fact.trial.number];
    trial.id = fact.trial;
    trial.config = fact.config;
    if (fact.patch) trial.patch = **fact.patch;
    trial.origin = fact.origin;
    if (fact.thought) BookOf(fact.trial.sweep).thinks.reset();
    trial.requested = fact.origin == kEnqueued;
  }
  void operator()(const TrialReopened& fact) {
    TrialBook& trial = BookOf(fact.record.id);
    trial.state = TrialState::kPending;
    trial.failures = 0;
    trial.filled_disk = false;
    trial.avoided.clear();
    trial.until = fact.until;
    trial.requested = true;
    trial.held = false;
    trial.not_before = now_;
    if (!fact.from_start) return;
    trial.last_step = Step(0);
    trial.earlier_attempts = trial.attempts;
  }
  void operator()(const AttemptAssigned& fact) {
    TrialBook& trial = BookOf(fact.attempt.trial);
    trial.state = TrialState::kRunning;
    trial.attempts = fact.attempt.number;
    trial.live = AttemptBook{
        .id = fact.attempt,
        .epoch = fact.epoch,
        .ranks = fact.ranks,
        .first = fact.ranks.empty() ? "" : fact.ranks.front().executor,
        .spans = !fact.ranks.empty() && fact.ranks.front().executor != fact.ranks.back().executor,
        .resume = fact.resume,
        .assigned = now_,
        .key = fact.idempotency_key};
    books_.last_epoch = fact.epoch;
    if (books_.reservation && books_.reservation->sweep == fact.attempt.trial.sweep)
      books_.reservation.reset();
  }
  void operator()(const AttemptRenewed&) {}
  void operator()(const AttemptStarted&) {}
  void operator()(const AttemptFirstStep&) {}
  void operator()(const RendezvousOpened&) {}
  void operator()(const MetricsLogged&) {}

  static void ClearDonor(TrialBook& trial) {
    trial.donor.reset();
    trial.cloned.reset();
  }
  void operator()(const TrialReported& fact) {
    SweepBook& sweep = BookOf(fact.attempt.trial.sweep);
    TrialBook& trial = BookOf(fact.attempt.trial);
    trial.last_step = fact.report.step;
    if (trial.live) {
      trial.live->last_reported = fact.report.step;
      trial.live->seconds = fact.report.seconds;
    }
    for (CheckpointBook& checkpoint : trial.checkpoints) {
      if (!checkpoint.unreported || checkpoint.attempt != fact.attempt.number ||
          checkpoint.ref.step > fact.report.step)
        continue;
      checkpoint.unreported = false;
      ClearDonor(trial);
    }
    const std::vector<double> values = CountingValues(sweep.spec, fact.report.metrics);
    if (values.empty()) return;
    for (CheckpointBook& checkpoint : trial.checkpoints) {
      if (checkpoint.attempt == fact.attempt.number && checkpoint.ref.step == fact.report.step)
        checkpoint.values = values;
    }
    AddToFront(sweep, {{trial.id, fact.attempt.number, fact.report.step}, values});
  }
  void operator()(const TrialYielding&) {}
  void operator()(const TrialDecided& fact) {
    TrialBook& trial = BookOf(fact.attempt.trial);
    if (trial.live) trial.live->left = fact.verdict.kind != VerdictKind::kContinue;
    if (fact.verdict.kind == VerdictKind::kPause) {
      trial.state = TrialState::kPaused;
      trial.held = IsOrder(fact.verdict.reason.rule);
    }
    if (fact.verdict.kind != VerdictKind::kExploit) return;
    trial.config = fact.verdict.config;
    trial.donor = fact.verdict.donor.trial.number;
    if (!fact.cloned) return;
    trial.cloned = **fact.cloned;
    trial.last_step = trial.cloned->ref.step;
  }
  void operator()(const TrialPromoted& fact) {
    TrialBook& trial = BookOf(fact.trial);
    trial.state = TrialState::kPending;
    trial.not_before = now_;
    if (fact.config) trial.config = *fact.config;
    if (!fact.cloned) return;
    trial.donor = fact.donor->trial.number;
    trial.cloned = **fact.cloned;
    trial.last_step = trial.cloned->ref.step;
  }
  void operator()(const AttemptPartEnded& fact) {
    SweepBook& sweep = BookOf(fact.attempt.trial.sweep);
    TrialBook& trial = BookOf(fact.attempt.trial);
    if (!trial.live) return;
    for (const RankSlot& slot : trial.live->ranks) {
      if (slot.executor != fact.executor) continue;
      sweep.gpu_seconds +=
          1e-8 * GpuPercent(slot) * static_cast<double>(now_.us - trial.live->assigned.us);
    }
    std::erase_if(trial.live->ranks,
                  [&](const RankSlot& slot) { return slot.executor == fact.executor; });
    if (books_.reservation) books_.reservation->ahead.erase({fact.executor, trial.live->epoch});
    trial.live->fallen |= fact.outcome != Outcome::kFinished;
  }
  void operator()(const AttemptEnded& fact) {
    SweepBook& sweep = BookOf(fact.attempt.trial.sweep);
    TrialBook& trial = BookOf(fact.attempt.trial);
    if (!trial.live) return;
    for (const RankSlot& slot : trial.live->ranks)
      sweep.gpu_seconds +=
          1e-8 * GpuPercent(slot) * static_cast<double>(now_.us - trial.live->assigned.us);
    if (books_.reservation) {
      for (const RankSlot& slot : trial.live->ranks)
        books_.reservation->ahead.erase({slot.executor, trial.live->epoch});
    }
    trial.seconds.value += trial.live->seconds.value;
    trial.live.reset();
    const bool forgiven = fact.failure.kind == FailureKind::kDisk && !trial.filled_disk;
    trial.filled_disk |= forgiven;
    if (trial.state == TrialState::kRunning && fact.outcome == Outcome::kFailed &&
        fact.failure.kind != FailureKind::kLease && fact.failure.kind != FailureKind::kHost &&
        fact.failure.kind != FailureKind::kEnvironment && !forgiven &&
        !RetriesElsewhere(sweep, trial, fact.failure))
      ++trial.failures;
  }
  void operator()(const TrialRequeued& fact) {
    TrialBook& trial = BookOf(fact.trial);
    trial.state = TrialState::kPending;
    trial.not_before = fact.not_before;
    trial.held = false;
    if (!fact.avoided.empty()) trial.avoided.insert(fact.avoided);
  }
  void operator()(const TrialEnded& fact) {
    TrialBook& trial = BookOf(fact.trial);
    trial.state = fact.state;
    trial.donor.reset();
    trial.cloned.reset();
  }

  void operator()(const CheckpointSaved& fact) {
    TrialBook& trial = BookOf(fact.attempt.trial);
    CheckpointBook checkpoint{.attempt = fact.attempt.number,
                              .ref = fact.checkpoint,
                              .unreported = fact.checkpoint.step > trial.last_step};
    if (trial.live) {
      trial.live->saved = true;
      if (!trial.live->ranks.empty()) checkpoint.executor = trial.live->first;
    }
    if (!checkpoint.unreported) ClearDonor(trial);
    trial.checkpoints.push_back(std::move(checkpoint));
  }
  void operator()(const TrialAnnotated&) {}
  void operator()(const CheckpointPinned& fact) {
    if (CheckpointBook* book = CheckpointOf(fact.checkpoint)) book->pinned = fact.pinned;
  }
  void operator()(const CheckpointDropped& fact) {
    if (CheckpointBook* book = CheckpointOf(fact.checkpoint)) book->dropped = true;
  }
  void operator()(const CheckpointRemoved& fact) {
    if (CheckpointBook* book = CheckpointOf(fact.checkpoint)) book->removed = true;
  }

  void operator()(const CheckpointStored& fact) {
    CheckpointBook* book = CheckpointOf(fact.checkpoint);
    if (book == nullptr || book->ref.digest != fact.digest) return;
    book->stored = !fact.address.empty();
    book->only |= fact.only;
  }

  void operator()(const SlotsReserved& fact) {
    ReservationBook reservation{.sweep = fact.sweep};
    for (const GangPart& part : fact.parts) reservation.workers[part.executor] = part.workers;
    const GangSpec& gang = BookOf(fact.sweep).spec.gang;
    if (fact.parts.empty())
      reservation.workers[fact.executor] = gang.min_workers > 0 ? gang.min_workers : gang.workers;
    for (const AttemptBook* attempt : books_.LiveAttempts()) {
      for (const RankSlot& slot : attempt->ranks) {
        if (reservation.workers.contains(slot.executor))
          reservation.ahead.insert({slot.executor, attempt->epoch});
      }
    }
    books_.reservation = std::move(reservation);
  }
  void operator()(const ReservationReleased&) { books_.reservation.reset(); }
  void operator()(const ExecutorJoined& fact) {
    const bool drained = books_.executors[fact.name].drained;
    books_.executors[fact.name] = {.instance = fact.instance,
                                   .incarnation = fact.incarnation,
                                   .resources = fact.resources,
                                   .spans = fact.spans,
                                   .folder = fact.folder,
                                   .labels = fact.labels,
                                   .drained = drained,
                                   .ends = fact.time_left.value > 0};
  }
  void operator()(const LogIdentified&) {}
  void operator()(const ClockAdjusted&) {}
  void operator()(const ExecutorDrained& fact) { books_.executors[fact.name].drained = true; }
  void operator()(const ExecutorResumed& fact) {
    ExecutorBook& executor = books_.executors[fact.name];
    executor.drained = executor.quarantined = false;
    executor.excluded.clear();
    for (auto& [id, sweep] : books_.sweeps) {
      for (auto& [number, trial] : sweep.trials) trial.avoided.erase(fact.name);
    }
  }
  void operator()(const ExecutorHealth& fact) {
    books_.executors[fact.name].unhealthy = !fact.problem.empty();
  }
  void operator()(const ExecutorQuarantined& fact) {
    books_.executors[fact.name].quarantined = true;
  }
  void operator()(const ExecutorQuarantineEnded& fact) {
    books_.executors[fact.name].quarantined = false;
  }
  void operator()(const ExecutorExcluded& fact) {
    books_.executors[fact.name].excluded.insert(fact.sweep);
  }
  void operator()(const ExecutorLost& fact) {
    ExecutorBook& executor = books_.executors[fact.name];
    executor.lost = true;
    executor.unhealthy = executor.quarantined = false;
  }
  void operator()(const ExecutorForgotten& fact) { books_.executors.erase(fact.name); }
  void operator()(const EnvironmentRecorded&) {}

 private:
  // Whether failure.on_log moves the trial away from this executor for the first time.
  static bool RetriesElsewhere(const SweepBook& sweep, const TrialBook& trial,
                               const Failure& failure) {
    for (const LogPolicy& policy : sweep.spec.failure.on_log) {
      if (policy.pattern == failure.pattern)
        return policy.action != LogAction::kFail && !trial.avoided.contains(failure.executor);
    }
    return false;
  }
  SweepBook& BookOf(SweepId id) { return books_.sweeps[id]; }
  TrialBook& BookOf(const TrialId& id) { return books_.sweeps[id.sweep].trials[id.number]; }
  CheckpointBook* CheckpointOf(const CheckpointId& id) {
    return const_cast<CheckpointBook*>(books_.Find(id));  // NOLINT: the books are not const
  }

  void StartClock(SweepBook& sweep) {
    sweep.state = SweepState::kRunning;
    sweep.running_since = now_;
  }
  void StopClock(SweepBook& sweep, SweepState state) {
    if (sweep.state == SweepState::kRunning) sweep.ran_us += now_.us - sweep.running_since.us;
    sweep.state = state;
  }

  Books& books_;
  Time now_;
};

}  // namespace

TrialRecord TrialBook::Record(EventSeq seen) const {
  TrialRecord record{.id = id,
                     .config = config,
                     .patch = patch,
                     .state = state,
                     .attempts = attempts,
                     .last_step = last_step,
                     .seconds = seconds,
                     .seen = seen};
  for (const CheckpointBook& book : checkpoints) {
    if (!book.dropped)
      record.checkpoints.push_back({.attempt = book.attempt,
                                    .ref = book.ref,
                                    .executor = book.executor,
                                    .values = book.values,
                                    .pinned = book.pinned});
  }
  return record;
}

bool SweepBook::IsAsGood(const std::vector<double>& a, const std::vector<double>& b) const {
  // Compares with signs changed where needed, so that larger values are better.
  for (size_t i = 0; i < a.size(); ++i) {
    const double sign = spec.objectives[i].mode == Mode::kMax ? 1 : -1;
    if (sign * a[i] < sign * b[i]) return false;
  }
  return true;
}

bool SweepBook::IsOnFront(const CheckpointId& checkpoint) const {
  return std::ranges::find(front, checkpoint, &BestBook::at) != front.end();
}

bool SweepBook::TargetReached() const {
  const auto& targets = spec.stop.targets;
  return !targets.empty() && std::ranges::any_of(front, [&](const BestBook& report) {
    for (size_t i = 0; i < targets.size(); ++i) {
      if (targets[i] && spec.objectives[i].Worse(report.values[i], *targets[i])) return false;
    }
    return true;
  });
}

int SweepBook::LiveCount() const {
  return static_cast<int>(std::ranges::count_if(
      trials, [](const auto& entry) { return entry.second.live.has_value(); }));
}

void Books::Record(const Event& event) {
  std::visit(Recorder(*this, event.time), event.fact);
  last_seq = event.seq;
  last_time = event.time;
}

const SweepBook* Books::Find(SweepId id) const {
  const auto found = sweeps.find(id);
  return found == sweeps.end() ? nullptr : &found->second;
}

const TrialBook* Books::Find(const TrialId& id) const {
  const SweepBook* sweep = Find(id.sweep);
  if (sweep == nullptr) return nullptr;
  const auto found = sweep->trials.find(id.number);
  return found == sweep->trials.end() ? nullptr : &found->second;
}

const CheckpointBook* Books::Find(const CheckpointId& id) const {
  const TrialBook* trial = Find(id.trial);
  if (trial == nullptr) return nullptr;
  const auto found = std::ranges::find_if(trial->checkpoints, [&](const CheckpointBook& book) {
    return book.attempt == id.attempt && book.ref.step == id.step;
  });
  return found == trial->checkpoints.end() ? nullptr : &*found;
}

std::vector<const AttemptBook*> Books::LiveAttempts() const {
  std::vector<const AttemptBook*> live;
  for (const auto& [id, sweep] : sweeps) {
    for (const auto& [number, trial] : sweep.trials) {
      if (trial.live) live.push_back(&*trial.live);
    }
  }
  return live;
}

}  // namespace attune::sim
