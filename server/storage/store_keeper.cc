#include "server/storage/store_keeper.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "logging/log.h"
#include "server/conductor/retry_delay.h"

namespace attune::server {
namespace {

constexpr std::chrono::hours kPartsInterval{24};

}  // namespace

StoreKeeper::StoreKeeper(StoreJobs& jobs, Stores& stores, StoredSweeps& stored, Delays delays)
    : jobs_(jobs), stores_(stores), stored_(stored), delays_(delays), thread_([this] { Run(); }) {}

StoreKeeper::~StoreKeeper() {
  stop_.request_stop();
  {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  thread_.join();
}

bool StoreKeeper::IsBusy(SweepId sweep) const {
  const std::lock_guard lock(mutex_);
  const auto is_of_sweep = [&](const Job& job) {
    return job.kind != Kind::kParts && job.in.sweep == sweep;
  };
  return (current_ && is_of_sweep(*current_)) ||
         std::ranges::any_of(due_, [&](const auto& due) { return is_of_sweep(due.first); });
}

std::string StoreKeeper::ProblemOf(SweepId sweep) const {
  const std::lock_guard lock(mutex_);
  const auto failed = std::ranges::find_if(
      failures_, [&](const auto& failure) { return failure.first.in.sweep == sweep; });
  return failed == failures_.end() ? "" : failed->second.message;
}

// ---- events -------------------------------------------------------------------------------------

void StoreKeeper::OnStarted(const Brain& brain) {
  const State& state = brain.state();
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  for (const StoredSweep& stored : stored_.All()) {
    if (stored.identity != IdentityOf(state, stored.sweep)) continue;  // of a log that is gone
    const SweepInStore in{stored.sweep, stored.identity, stored.address};
    if (state.deleted.contains(stored.sweep)) {
      Schedule({Kind::kDelete, in}, now);
      continue;
    }
    Note(in, now);
    Schedule({Kind::kClean, in}, now);
    if (state.Find(stored.sweep) == nullptr) Schedule({Kind::kResults, in}, now);
  }
  for (const auto& [id, sweep] : state.sweeps) {
    if (sweep.spec.storage.empty()) continue;
    const SweepInStore in{id, IdentityOf(state, id), sweep.spec.storage};
    Note(in, now);
    for (const auto& [number, trial] : sweep.trials) {
      if (trial.patch) patched_[id].insert((*trial.patch)->code);
    }
    Schedule({Kind::kCode, in}, now);
    Schedule({Kind::kResults, in}, now + delays_.results);
  }
}

// Remembers a sweep with a store.
void StoreKeeper::Note(const SweepInStore& in, Clock::time_point now) {
  sweeps_[in.sweep] = in;
  Schedule({Kind::kParts, {.address = in.address}}, now);
}

void StoreKeeper::OnDurable(std::span<const Event> events, const Brain& brain) {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  for (const Event& event : events) OnEvent(event, brain.state(), now);
}

void StoreKeeper::OnEvent(const Event& event, const State& state, Clock::time_point now) {
  if (const auto* created = std::get_if<SweepCreated>(&event.fact)) {
    const std::string& address = created->spec->storage;
    if (address.empty()) return;
    const SweepInStore in{created->sweep, IdentityOf(state, created->sweep), address};
    const bool is_new = std::ranges::none_of(
        sweeps_, [&](const auto& known) { return known.second.address == address; });
    sweeps_[in.sweep] = in;
    if (is_new) Schedule({Kind::kParts, {.address = address}}, now + kPartsInterval);
    Schedule({Kind::kCode, in}, now + delays_.settle);
    return Schedule({Kind::kResults, in}, now + delays_.results);
  }
  if (sweeps_.empty()) return;
  const auto id = SweepOf(event.fact);
  if (!id) return;
  const auto known = sweeps_.find(*id);
  if (known == sweeps_.end()) return;
  OnChange(event.fact, SweepInStore(known->second), state.Find(*id) == nullptr, now);
}

void StoreKeeper::OnChange(const Fact& fact, const SweepInStore& in, bool has_ended,
                           Clock::time_point now) {
  const auto next = [&](Kind kind, std::chrono::milliseconds interval) {
    const auto done = done_at_.find({kind, in});
    const auto soon = now + delays_.settle;
    return done == done_at_.end() ? soon : std::max(soon, done->second + interval);
  };
  if (IsOneOf<SweepDeleted>(fact)) {
    std::erase_if(due_, [&](const auto& due) { return due.first.in == in; });
    std::erase_if(done_at_, [&](const auto& done) { return done.first.in == in; });
    std::erase_if(failures_, [&](const auto& failure) { return failure.first.in == in; });
    patched_.erase(in.sweep);
    dropped_.erase(in.sweep);
    Schedule({Kind::kDelete, in}, now + delays_.deletion);
    sweeps_.erase(in.sweep);
    return;
  }
  if (const auto* created = std::get_if<TrialCreated>(&fact); created && created->patch) {
    patched_[in.sweep].insert((*created->patch)->code);
    Schedule({Kind::kCode, in}, now + delays_.settle);
  }
  if (IsOneOf<CheckpointDropped>(fact)) dropped_.insert(in.sweep);
  if (IsOneOf<CheckpointDropped, CheckpointStored, TrialEnded, SweepEnded>(fact))
    Schedule({Kind::kClean, in},
             has_ended ? now + delays_.settle : next(Kind::kClean, delays_.clean));
  if (IsOneOf<SweepEnded>(fact)) return Schedule({Kind::kResults, in}, now + delays_.settle);
  if (IsOneOf<TrialReported, TrialCreated, TrialEnded, TrialAnnotated, SweepEdited, SweepAnnotated>(
          fact))
    Schedule({Kind::kResults, in},
             std::max(now + delays_.results, next(Kind::kResults, delays_.results)));
}

void StoreKeeper::Schedule(const Job& job, Clock::time_point at) {
  const auto [entry, is_new] = due_.try_emplace(job, at);
  if (!is_new && entry->second <= at) return;
  entry->second = at;
  changed_.notify_all();
}

// ---- the thread ---------------------------------------------------------------------------------

StoreKeeper::Clock::time_point StoreKeeper::ReadyAt(
    const std::pair<const Job, Clock::time_point>& due) const {
  const auto pause = pauses_.find(due.first.in.address);
  return pause == pauses_.end() ? due.second : std::max(due.second, pause->second.until);
}

void StoreKeeper::Run() {
  std::unique_lock lock(mutex_);
  while (!stop_.stop_requested()) {
    // Among jobs that a pause delays, the one that has waited longest is first.
    const auto next = std::ranges::min_element(
        due_, {}, [this](const auto& due) { return std::pair(ReadyAt(due), due.second); });
    if (next == due_.end()) {
      changed_.wait(lock);
      continue;
    }
    const auto now = Clock::now();
    if (const auto at = ReadyAt(*next); now < at) {
      changed_.wait_until(lock, failures_.empty() ? at : std::min(at, now + delays_.check));
      if (!failures_.empty()) ResumeWithNewVariables(lock);
      continue;
    }
    const Job job = next->first;
    due_.erase(next);
    current_ = job;
    lock.unlock();
    const Status done = Do(job);
    lock.lock();
    current_.reset();
    if (stop_.stop_requested()) return;
    Finish(job, done);
  }
}

void StoreKeeper::ResumeWithNewVariables(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  const bool is_new = stores_.variables() != variables_;
  lock.lock();
  if (!is_new) return;
  pauses_.clear();
  for (const auto& [job, failure] : failures_) Schedule(job, Clock::now());
}

Status StoreKeeper::Do(const Job& job) {
  std::set<std::string> patched;
  bool dropped = false;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = patched_.find(job.in.sweep); found != patched_.end())
      patched = found->second;
    if (job.kind == Kind::kClean) dropped = dropped_.erase(job.in.sweep) > 0;
  }
  const std::stop_token stop = stop_.get_token();
  switch (job.kind) {
    case Kind::kParts:
      return jobs_.RemoveAbandonedParts(job.in.address, stop);
    case Kind::kDelete:
      return jobs_.Delete(job.in, stop);
    case Kind::kCode:
      return jobs_.StoreCode(job.in, patched, stop);
    case Kind::kResults:
      return jobs_.StoreResults(job.in, patched, stop);
    case Kind::kClean:
      break;
  }
  Status done = jobs_.Clean(job.in, dropped, stop);
  if (!done.ok() && dropped) {
    const std::lock_guard lock(mutex_);
    if (sweeps_.contains(job.in.sweep)) dropped_.insert(job.in.sweep);
  }
  return done;
}

void StoreKeeper::Finish(const Job& job, const Status& done) {
  const auto now = Clock::now();
  const std::string& address = job.in.address;
  const bool is_known =
      job.kind == Kind::kDelete || std::ranges::any_of(sweeps_, [&](const auto& known) {
        return job.kind == Kind::kParts ? known.second.address == address : known.second == job.in;
      });
  if (job.kind == Kind::kParts) {
    // Nothing else waits for this, and not all credentials allow it.
    if (!done.ok()) logging::Warn("{}", done.error().message);
    if (is_known) Schedule(job, now + kPartsInterval);
    return;
  }
  if (done.ok() || !is_known) {
    failures_.erase(job);
    if (done.ok()) pauses_.erase(address);
    if (!is_known) return;
    if (job.kind == Kind::kClean || job.kind == Kind::kResults) done_at_[job] = now;
    return;
  }
  Failure& failure = failures_[job];
  if (failure.message != done.error().message)
    logging::Warn("{}; the server tries again later", done.error().message);
  failure.message = done.error().message;
  failure.delay = NextRetryDelay(failure.delay);
  Schedule(job, now + failure.delay);
  variables_ = stores_.variables();
  if (done.error().code == ErrorCode::kNotFound) return;  // a file or program of this host
  Pause& pause = pauses_[address];
  pause.delay = NextRetryDelay(pause.delay);
  pause.until = now + pause.delay;
}

}  // namespace attune::server
