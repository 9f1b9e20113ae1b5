#include "core/state.h"

#include <algorithm>

#include "core/check.h"
#include "core/random.h"

namespace attune {

Trial* Sweep::Find(TrialNumber number) {
  return number.value < trials.size() ? &trials[number.value] : nullptr;
}

const Trial* Sweep::Find(TrialNumber number) const {
  return number.value < trials.size() ? &trials[number.value] : nullptr;
}

const Sweep* State::Find(SweepId id) const {
  const auto found = sweeps.find(id);
  return found == sweeps.end() ? nullptr : &found->second;
}

const Trial* State::Find(const TrialId& id) const {
  const Sweep* sweep = Find(id.sweep);
  return sweep == nullptr ? nullptr : sweep->Find(id.number);
}

const Sweep* State::FindByKey(const std::string& idempotency_key) const {
  if (idempotency_key.empty()) return nullptr;
  for (const auto& [id, sweep] : sweeps) {
    if (sweep.idempotency_key == idempotency_key) return &sweep;
  }
  return nullptr;
}

bool Wanted(const Trial& trial) {
  return trial.state != TrialState::kFailed && trial.state != TrialState::kKilled;
}

std::vector<const Trial*> WantedOn(const State& state, const std::string& executor) {
  std::vector<const Trial*> wanted;
  for (const auto& [id, sweep] : state.sweeps) {
    for (TrialNumber number : sweep.live) {
      const Trial& trial = *sweep.Find(number);
      if (!Wanted(trial)) continue;
      if (std::ranges::any_of(trial.live->ranks,
                              [&](const RankSlot& slot) { return slot.executor == executor; }))
        wanted.push_back(&trial);
    }
  }
  std::ranges::sort(wanted, {}, [](const Trial* trial) { return trial->live->epoch; });
  return wanted;
}

uint64_t SeedOf(const SweepSpec& spec, TrialNumber trial) {
  return RandomStream(spec.seed, trial, "trial/seed").Bits() >> 11;
}

namespace {

// Changes the state by one fact; searchers and schedulers are told by Apply.
class Applier {
 public:
  Applier(State& state, Time now) : state_(state), now_(now) {}

  void operator()(const SweepCreated& fact) {
    auto searcher = state_.algorithms->MakeSearcher(fact.spec);
    auto scheduler = state_.algorithms->MakeScheduler(fact.spec);
    ATTUNE_CHECK(searcher.ok() && scheduler.ok());
    Sweep& sweep = state_.sweeps[fact.sweep];
    sweep.id = fact.sweep;
    sweep.spec = fact.spec;
    sweep.idempotency_key = fact.idempotency_key;
    sweep.searcher = std::move(searcher).value();
    sweep.scheduler = std::move(scheduler).value();
    state_.last_sweep = fact.sweep;
  }

  void operator()(const SweepStopping& fact) {
    Sweep& sweep = SweepAt(fact.sweep);
    sweep.stopping_as = fact.outcome;
    sweep.reason = fact.reason;
  }

  void operator()(const SweepEnded& fact) {
    Sweep& sweep = SweepAt(fact.sweep);
    sweep.state = fact.state;
    sweep.reason = fact.reason;
    sweep.trials = {};  // its history is in the store
    sweep.searcher.reset();
    sweep.scheduler.reset();
  }

  void operator()(const SearchExhausted& fact) { SweepAt(fact.sweep).exhausted = true; }

  void operator()(const TrialCreated& fact) {
    Sweep& sweep = SweepAt(fact.trial.sweep);
    ATTUNE_CHECK(fact.trial.number.value == sweep.trials.size());
    Trial& trial = sweep.trials.emplace_back();
    trial.id = fact.trial;
    trial.config = fact.config;
    ++sweep.created;
    ++sweep.by_state[static_cast<size_t>(trial.state)];
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
    trial.attempts = fact.attempt.number;
    trial.milestone = fact.milestone;
    state_.last_epoch = fact.epoch;
    sweep.live.insert(trial.id.number);
    Move(trial, TrialState::kRunning);
    for (const RankSlot& slot : fact.ranks) Occupy(slot);
  }

  void operator()(const AttemptStarted& fact) {
    TrialAt(fact.attempt.trial).live->state = AttemptState::kRunning;
  }

  void operator()(const AttemptFirstStep&) {}

  void operator()(const TrialReported& fact) {
    TrialAt(fact.attempt.trial).last_step = fact.report.step;
    SweepAt(fact.attempt.trial.sweep).reported = true;
  }

  void operator()(const TrialDecided& fact) {
    Trial& trial = TrialAt(fact.attempt.trial);
    trial.live->verdict = fact.verdict.kind;
    trial.live->verdict_step = fact.step;
    trial.milestone = fact.milestone;
    if (fact.verdict.kind == VerdictKind::kPause) Move(trial, TrialState::kPaused);
  }

  void operator()(const CheckpointSaved& fact) {
    TrialAt(fact.attempt.trial).checkpoint = fact.checkpoint;
  }

  void operator()(const AttemptEnded& fact) {
    Sweep& sweep = SweepAt(fact.attempt.trial.sweep);
    Trial& trial = TrialAt(fact.attempt.trial);
    for (const RankSlot& slot : trial.live->ranks) Release(slot);
    trial.live.reset();
    sweep.live.erase(trial.id.number);
    if (fact.outcome == Outcome::kFailed && fact.failure.kind != FailureKind::kLease)
      ++trial.failures;
  }

  void operator()(const TrialRequeued& fact) { Move(TrialAt(fact.trial), TrialState::kPending); }

  void operator()(const TrialEnded& fact) { Move(TrialAt(fact.trial), fact.state); }

  void operator()(const ExecutorJoined& fact) {
    Executor& executor = state_.executors[fact.name];
    executor = {.name = fact.name,
                .instance = fact.instance,
                .incarnation = fact.incarnation,
                .address = fact.address,
                .host = {.name = fact.name,
                         .total = fact.resources,
                         .cpus_free = fact.resources.cpus,
                         .memory_free = fact.resources.memory_bytes}};
    for (int gpu = 0; gpu < fact.resources.gpus; ++gpu) executor.host.gpus_free.push_back(gpu);
    state_.last_incarnation = fact.incarnation;
  }

  void operator()(const ExecutorLost& fact) { state_.executors[fact.name].lost = true; }

 private:
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

  void Move(Trial& trial, TrialState to) {
    Sweep& sweep = SweepAt(trial.id.sweep);
    --sweep.by_state[static_cast<size_t>(trial.state)];
    ++sweep.by_state[static_cast<size_t>(to)];
    trial.state = to;
  }

  void Occupy(const RankSlot& slot) {
    Host& host = state_.executors[slot.executor].host;
    host.cpus_free -= slot.cpus;
    host.memory_free -= slot.memory_bytes;
    for (int gpu : slot.gpus) std::erase(host.gpus_free, gpu);
  }

  void Release(const RankSlot& slot) {
    Host& host = state_.executors[slot.executor].host;
    host.cpus_free += slot.cpus;
    host.memory_free += slot.memory_bytes;
    host.gpus_free.insert(host.gpus_free.end(), slot.gpus.begin(), slot.gpus.end());
    std::ranges::sort(host.gpus_free);
  }

  State& state_;
  Time now_;
};

}  // namespace

void Apply(State& state, const Event& event) {
  ATTUNE_CHECK(event.seq.value == state.last_seq.value + 1);
  state.last_seq = event.seq;
  std::visit(Applier(state, event.time), event.fact);
  if (const auto id = SweepOf(event.fact)) {
    Sweep& sweep = state.sweeps.at(*id);
    if (sweep.searcher) sweep.searcher->Observe(event);
    if (sweep.scheduler) sweep.scheduler->Observe(event);
  }
}

}  // namespace attune
