#include "server/best_keeper.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "checkpoints/download.h"
#include "core/state/retention.h"
#include "logging/log.h"
#include "server/conductor/retry_delay.h"

namespace attune::server {
namespace {

using checkpoints::Downloaded;

// The delay before a new best checkpoint is copied, because a better one may follow at once.
constexpr std::chrono::milliseconds kSettleDelay{500};

// Only few reports are on the front of their sweep.
bool IsBestReport(const TrialReported& fact, const State& state) {
  const Sweep* const sweep = state.Find(fact.attempt.trial.sweep);
  return sweep != nullptr &&
         IsBest(*sweep, {fact.attempt.trial, fact.attempt.number, fact.report.step});
}

}  // namespace

std::optional<SweepId> SweepWithChangedBest(const Event& event, const State& state) {
  if (const auto* reported = std::get_if<TrialReported>(&event.fact)) {
    if (!IsBestReport(*reported, state)) return std::nullopt;
    return reported->attempt.trial.sweep;
  }
  if (const auto* saved = std::get_if<CheckpointSaved>(&event.fact))
    return saved->attempt.trial.sweep;
  if (const auto* dropped = std::get_if<CheckpointDropped>(&event.fact))
    return dropped->checkpoint.trial.sweep;
  if (const auto* ended = std::get_if<TrialEnded>(&event.fact)) return ended->trial.sweep;
  if (const auto* deleted = std::get_if<SweepDeleted>(&event.fact)) return deleted->sweep;
  return std::nullopt;
}

BestKeeper::BestKeeper(const CheckpointStorage& storage, CheckpointSource& source, Reader& reader)
    : storage_(storage), source_(source), reader_(reader), thread_([this] { Run(); }) {}

BestKeeper::~BestKeeper() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void BestKeeper::OnStarted(const Brain& brain) {
  const auto now = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    deleted_ = brain.state().deleted;
    removed_deleted_ = false;
    changed_.notify_all();
  }
  for (const auto& [id, sweep] : brain.state().sweeps) Schedule(id, now);
  for (const auto& [id, ended] : brain.state().ended) Schedule(id, now);
}

void BestKeeper::OnDurable(std::span<const Event> events, const Brain& brain) {
  std::set<SweepId> changed;
  bool executor_joined = false;  // an executor that may have the missing checkpoints
  for (const Event& event : events) {
    if (const auto sweep = SweepWithChangedBest(event, brain.state())) changed.insert(*sweep);
    if (const auto* deleted = std::get_if<SweepDeleted>(&event.fact)) {
      const std::lock_guard lock(mutex_);
      deleted_.insert(deleted->sweep);
    }
    executor_joined = executor_joined || std::holds_alternative<ExecutorJoined>(event.fact);
  }
  if (executor_joined) {
    const std::lock_guard lock(mutex_);
    for (const auto& [sweep, delay] : retry_delays_) changed.insert(sweep);
  }
  for (const SweepId sweep : changed) Schedule(sweep, Clock::now() + kSettleDelay);
}

// An earlier time that is already scheduled stays, so a sweep that always saves still gets its
// turn.
void BestKeeper::Schedule(SweepId sweep, Clock::time_point at) {
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = due_.try_emplace(sweep, at);
  if (!is_new && entry->second <= at) return;
  entry->second = at;
  changed_.notify_all();
}

bool BestKeeper::IsStopping() {
  const std::lock_guard lock(mutex_);
  return stop_;
}

bool BestKeeper::HasFailedBefore(SweepId sweep) {
  const std::lock_guard lock(mutex_);
  return retry_delays_.contains(sweep);
}

// Removes the copies of deleted sweeps. Sweeps whose copies could not be removed are due again.
void BestKeeper::RemoveDeletedSweeps(std::unique_lock<std::mutex>& lock) {
  const std::set<SweepId> deleted = deleted_;
  lock.unlock();
  std::vector<SweepId> failed;
  for (const SweepId id : deleted) {
    if (!IsStopping() && !storage_.Remove(id)) failed.push_back(id);
  }
  lock.lock();
  for (const SweepId id : failed) due_.try_emplace(id, Clock::now() + kRetryDelay);
}

void BestKeeper::Run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (!std::exchange(removed_deleted_, true)) {
      RemoveDeletedSweeps(lock);
      continue;
    }
    const auto next =
        std::ranges::min_element(due_, {}, [](const auto& due) { return due.second; });
    if (next == due_.end()) {
      changed_.wait(lock);
      continue;
    }
    if (const auto at = next->second; Clock::now() < at) {
      changed_.wait_until(lock, at);
      continue;
    }
    const SweepId sweep = next->first;
    due_.erase(next);
    const bool deleted = deleted_.contains(sweep);
    lock.unlock();
    const bool all = deleted ? storage_.Remove(sweep) : CopyBest(sweep);
    lock.lock();
    if (all) {
      retry_delays_.erase(sweep);
    } else {
      auto& wait = retry_delays_[sweep];
      wait = NextRetryDelay(wait);
      due_.try_emplace(sweep, Clock::now() + wait);
    }
  }
}

bool BestKeeper::CopyBest(SweepId sweep) {
  const auto row = reader_.Sweep(sweep);
  if (!row.ok()) return row.error().code == ErrorCode::kNotFound;
  std::set<CheckpointId> best;
  bool all = true;
  for (const BestTrial& trial : row->front) {
    const auto page = reader_.Checkpoints(sweep, trial.trial, 1);
    if (!page.ok()) return false;
    for (const KeptRow& kept : page->checkpoints) {
      if (kept.checkpoint.path != trial.checkpoint) continue;
      const CheckpointId id{{sweep, kept.trial}, kept.checkpoint.attempt, kept.checkpoint.step};
      best.insert(id);
      if (storage_.Has(id, kept.checkpoint.digest)) continue;
      storage_.Remove(id);  // an outdated copy of another checkpoint with this name
      all = CopyCheckpoint(id, kept.checkpoint.digest) && all;
    }
  }
  storage_.RemoveUnfinished(sweep, best);
  if (!all) return false;
  for (const CheckpointId& id : storage_.ListCopies(sweep)) {
    if (!best.contains(id)) storage_.Remove(id);
  }
  return true;
}

bool BestKeeper::CopyCheckpoint(const CheckpointId& id, const std::string& digest) {
  const auto read = [&](const std::string& file, uint64_t offset,
                        const std::string&) -> Result<checkpoints::Piece> {
    if (IsStopping()) return Error{ErrorCode::kUnavailable, "the server is stopping"};
    auto piece = source_.Read(id, file, offset, checkpoints::kPieceBytesMax);
    if (!piece.ok()) return Error{ErrorCode::kUnavailable, piece.error().message};
    return checkpoints::Piece{.data = std::move(piece->data), .file_bytes = piece->file_bytes};
  };
  const Downloaded done = checkpoints::Download(
      {.name = ToString(id), .digest = digest, .read = read}, storage_.FolderOf(id), {});
  if (done.status.ok() || done.status.error().code == ErrorCode::kConflict) return true;
  if (IsStopping()) return false;
  logging::Log(HasFailedBefore(id.trial.sweep) ? logging::Level::kDebug : logging::Level::kWarn,
               "cannot copy the best checkpoint {} to {}: {}; the server tries again later",
               ToString(id), storage_.path().string(), done.status.error().message);
  return false;
}

}  // namespace attune::server
