#include "server/storage/upload_keeper.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "base/result.h"
#include "core/state/retention.h"
#include "logging/log.h"
#include "server/conductor/retry_delay.h"

namespace attune::server {
namespace {

// The delay before new wanted copies are sent, because better ones may follow at once.
constexpr std::chrono::milliseconds kOrderDelay{500};

bool IsStored(const WantedCopy& copy, const std::string& address) { return copy.stored == address; }

}  // namespace

std::optional<SweepId> SweepWithChangedCopies(const Event& event, const State& state) {
  const Fact& fact = event.fact;
  if (const auto* reported = std::get_if<TrialReported>(&fact)) {
    const auto& [trial, attempt] = reported->attempt;
    const Sweep* const sweep = state.Find(trial.sweep);
    if (sweep == nullptr) return std::nullopt;
    const CheckpointId id{trial, attempt, reported->report.step};
    // A checkpoint can be used once its step is reported.
    if (!IsBest(*sweep, id) && sweep->Find(id) == nullptr) return std::nullopt;
    return sweep->id;
  }
  const bool is_change =
      IsOneOf<SweepCreated, SweepEnded, SweepReopened, SweepDeleted, TrialCreated, TrialDecided,
              TrialReopened, TrialEnded, CheckpointSaved, CheckpointDropped, CheckpointStored>(
          fact);
  return is_change ? SweepOf(fact) : std::nullopt;
}

UploadKeeper::UploadKeeper(Options options, Reader& reader, StoredSweeps& stored)
    : options_(std::move(options)), reader_(reader), stored_(stored), thread_([this] { Run(); }) {}

UploadKeeper::~UploadKeeper() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void UploadKeeper::OnStarted(const Brain& brain) {
  const State& state = brain.state();
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  for (const auto& [id, sweep] : state.sweeps) {
    if (!sweep.spec.storage.empty()) sweeps_.insert(id);
  }
  for (const auto& [id, ended] : state.ended) sweeps_.insert(id);
  for (const StoredSweep& stored : stored_.All()) {
    if (stored.identity == IdentityOf(state, stored.sweep)) sweeps_.insert(stored.sweep);
  }
  for (const SweepId id : sweeps_) Schedule(id, now);
}

void UploadKeeper::OnDurable(std::span<const Event> events, const Brain& brain) {
  const std::lock_guard lock(mutex_);
  for (const Event& event : events) {
    if (const auto* created = std::get_if<SweepCreated>(&event.fact);
        created != nullptr && !created->spec->storage.empty())
      sweeps_.insert(created->sweep);
    if (IsOneOf<ExecutorJoined, ExecutorLost>(event.fact) && !sweeps_.empty()) {
      executors_changed_ = true;
      changed_.notify_all();
    }
    if (sweeps_.empty()) continue;
    const auto sweep = SweepWithChangedCopies(event, brain.state());
    if (sweep && sweeps_.contains(*sweep)) Schedule(*sweep, Clock::now() + kOrderDelay);
  }
}

bool UploadKeeper::IsBusy(SweepId sweep) {
  const std::lock_guard lock(mutex_);
  return due_.contains(sweep) || orders_.sweeps.contains(sweep) ||
         std::ranges::find(checking_, sweep) != checking_.end();
}

bool UploadKeeper::IsSkipped(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return orders_.skipped.contains(path);
}

size_t UploadKeeper::MissingCopies(SweepId sweep) {
  const std::lock_guard lock(mutex_);
  const auto missing = orders_.missing.find(sweep);
  return missing == orders_.missing.end() ? 0 : missing->second;
}

bool UploadKeeper::IsUploading(const std::string& executor) {
  const std::lock_guard lock(mutex_);
  return !due_.empty() || !checking_.empty() || orders_.executors.contains(executor);
}

// An earlier time that is already scheduled stays, so a sweep that always saves still gets its
// turn.
void UploadKeeper::Schedule(SweepId sweep, Clock::time_point at) {
  const auto [entry, is_new] = due_.try_emplace(sweep, at);
  if (!is_new && entry->second <= at) return;
  entry->second = at;
  changed_.notify_all();
}

void UploadKeeper::Run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const auto next =
        std::ranges::min_element(due_, {}, [](const auto& due) { return due.second; });
    const auto now = Clock::now();
    auto until = !wanted_.empty() ? now + options_.check_interval : Clock::time_point::max();
    if (next != due_.end()) until = std::min(until, next->second);
    const auto is_woken = [&] {
      return stop_ || executors_changed_ ||
             std::ranges::any_of(due_, [&](const auto& due) { return due.second < until; });
    };
    if (until == Clock::time_point::max()) {
      changed_.wait(lock, is_woken);
    } else if (until > now) {
      changed_.wait_until(lock, until, is_woken);
    }
    if (stop_) return;
    const std::vector<SweepId> sweeps = TakeDue();
    const bool checks_lists = executors_changed_ || !sweeps.empty() || Clock::now() >= until;
    if (!checks_lists) continue;
    executors_changed_ = false;
    checking_ = sweeps;
    lock.unlock();
    std::vector<SweepId> failed;
    for (const SweepId sweep : sweeps) {
      if (!Check(sweep)) failed.push_back(sweep);
    }
    SendLists();
    lock.lock();
    checking_.clear();
    for (const SweepId sweep : sweeps) {
      if (std::ranges::find(failed, sweep) == failed.end()) retry_delays_.erase(sweep);
    }
    for (const SweepId sweep : failed) {
      auto& delay = retry_delays_[sweep];
      delay = NextRetryDelay(delay);
      due_.try_emplace(sweep, Clock::now() + delay);
    }
    lock.unlock();
    options_.changed();
    lock.lock();
  }
}

// The sweeps that are due now. REQUIRES: mutex_ is locked.
std::vector<SweepId> UploadKeeper::TakeDue() {
  std::vector<SweepId> sweeps;
  const auto now = Clock::now();
  std::erase_if(due_, [&](const auto& due) {
    if (due.second > now) return false;
    sweeps.push_back(due.first);
    return true;
  });
  return sweeps;
}

// Reads the wanted copies of the sweep.
bool UploadKeeper::Check(SweepId sweep) {
  Result<WantedCopies> wanted = ReadWanted(sweep, reader_, options_.query);
  if (!wanted.ok() && wanted.error().code != ErrorCode::kNotFound) {
    logging::Warn("cannot read the checkpoints of {}: {}; the server tries again later",
                  ToString(sweep), wanted.error().message);
    return false;
  }
  if (!wanted.ok() || wanted->address.empty()) {
    Forget(sweep);
    return true;
  }
  wanted_.erase(sweep);
  const bool all_stored = std::ranges::all_of(
      wanted->copies, [&](const WantedCopy& copy) { return IsStored(copy, wanted->address); });
  if (all_stored) return true;
  const Status noted = stored_.Update(
      sweep, wanted->identity, [&](StoredSweep& stored) { stored.address = wanted->address; });
  if (!noted.ok()) {
    logging::Warn("checkpoints of {} are not uploaded now: {}; the server tries again later",
                  ToString(sweep), noted.error().message);
    return false;
  }
  wanted_[sweep] = *std::move(wanted);
  return true;
}

// The sweep was deleted or uses no store.
void UploadKeeper::Forget(SweepId sweep) {
  wanted_.erase(sweep);
  const std::lock_guard lock(mutex_);
  sweeps_.erase(sweep);
}

void UploadKeeper::SendLists() {
  std::vector<Uploader> uploaders;
  if (!wanted_.empty()) {
    options_.query([&](const Brain& brain) {
      for (const auto& [name, executor] : brain.state().executors) {
        if (!executor.lost) uploaders.push_back({name, FolderOf(executor)});
      }
    });
    std::erase_if(uploaders, [&](Uploader& each) {
      auto use = options_.use_of(each.name);
      if (use) each.skipped = std::move(use->skipped);
      return !use || !use->stores;
    });
  }
  auto lists =
      AssignUploads(wanted_, uploaders, options_.variables(), options_.bytes_per_second_max);
  Orders orders;
  for (auto& [executor, list] : lists) {
    orders.executors.insert(executor);
    for (const v1::Upload& upload : list.uploads())
      orders.sweeps.insert(SweepId(upload.checkpoint().sweep()));
    std::string text = list.SerializeAsString();
    std::string& sent = sent_[executor];
    if (sent == text) continue;
    sent = std::move(text);
    options_.send(executor, std::move(list));
  }
  std::erase_if(sent_, [&](const auto& sent) {
    if (lists.contains(sent.first)) return false;
    options_.send(sent.first, {});
    return true;
  });
  for (Uploader& uploader : uploaders) orders.skipped.merge(uploader.skipped);
  for (const auto& [sweep, wanted] : wanted_) {
    orders.missing[sweep] = static_cast<size_t>(std::ranges::count_if(
        wanted.copies, [&](const WantedCopy& copy) { return !IsStored(copy, wanted.address); }));
  }
  const std::lock_guard lock(mutex_);
  orders_ = std::move(orders);
}

}  // namespace attune::server
