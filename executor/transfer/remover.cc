#include "executor/transfer/remover.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/result.h"
#include "checkpoints/removal.h"
#include "executor/gang/set_aside.h"
#include "logging/log.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kTryAgain{1};

}  // namespace

// Returns the error; empty if it was deleted, did not exist, or belongs to another server.
std::string Remover::Remove(const Removal& removal) const {
  const fs::path& folder = removal.folder;
  if (removal.is_lost) {
    const Status moved = gang::SetSweepAside(folder, *removal.identity, folders_.SetAside());
    return moved.ok() ? "" : moved.error().message;
  }
  if (folder.empty()) return "it is outside of this executor's checkpoints; delete it by hand";
  std::error_code failed = checkpoints::RemoveFolder(checkpoints::PathOfRemoved(folder));
  if (failed) return failed.message();
  const bool is_there = fs::exists(folder, failed);
  if (failed) return failed.message();
  if (removal.identity && is_there) {
    const Result<std::string> mark = gang::ReadSweepMark(folder);
    if (!mark.ok()) return mark.error().message;
    if (*mark != std::to_string(*removal.identity)) {
      logging::Warn("keeping the {}: its mark is not the mark of the server that has deleted it",
                    removal.name);
      return "";
    }
  }
  failed = checkpoints::RemoveFolder(folder);
  return failed ? failed.message() : "";
}

Remover::Remover(gang::Folders folders, Removed removed)
    : folders_(std::move(folders)), removed_(std::move(removed)), thread_([this] { Run(); }) {}

Remover::~Remover() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Remover::SetRemovals(const Removals& wanted) {
  std::vector<Removal> removals = ToRemovals(wanted);
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const auto& known) {
    return known.second.state != State::kQueued &&
           std::ranges::find(removals, known.first, &Removal::name) == removals.end();
  });
  for (Removal& removal : removals) {
    const auto [entry, is_new] = entries_.try_emplace(removal.name);
    if (!is_new && entry->second.state != State::kFailed) continue;
    entry->second.removal = std::move(removal);
    Queue(entry->second);
  }
  changed_.notify_all();
}

void Remover::Discard(fs::path folder) {
  const std::lock_guard lock(mutex_);
  discarded_.push_back(std::move(folder));
  changed_.notify_all();
}

void Remover::FindMissing(v1::Inventory inventory) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const auto& known) { return known.first != current_; });
  queue_.clear();
  inventories_.push_back(std::move(inventory));
  changed_.notify_all();
}

// If the data folder itself is missing, such as an unmounted network folder, reports nothing.
void Remover::ReportMissing(const v1::Inventory& inventory) const {
  std::error_code failed;
  if (!fs::exists(folders_.Sweeps(), failed)) return;
  for (const v1::CheckpointName& checkpoint : inventory.checkpoints()) {
    const fs::path folder =
        folders_.Checkpoints({.sweep = checkpoint.sweep(), .trial = checkpoint.trial()}) /
        gang::CheckpointFolder(checkpoint.step(), checkpoint.attempt());
    if (!fs::exists(folder, failed) && !failed) removed_.gone(checkpoint);
  }
}

void Remover::Queue(Entry& entry) {
  entry.state = State::kQueued;
  queue_.push_back(entry.removal.name);
}

std::vector<Remover::Removal> Remover::ToRemovals(const Removals& wanted) const {
  std::vector<Removal> removals;
  for (const v1::CheckpointRemoval& checkpoint : wanted.checkpoints) {
    fs::path folder =
        folders_.Checkpoints({.sweep = checkpoint.sweep(), .trial = checkpoint.trial()}) /
        gang::CheckpointFolder(checkpoint.step(), checkpoint.attempt());
    if (checkpoint.path() != folder) folder.clear();
    removals.push_back({.name = "checkpoint " + checkpoint.path(),
                        .folder = std::move(folder),
                        .removed = [this, checkpoint] { removed_.checkpoint(checkpoint); }});
  }
  for (const SweepFiles& files : wanted.sweeps) {
    fs::path folder = folders_.Sweep(files.sweep);
    removals.push_back({.name = "sweep " + folder.string(),
                        .folder = std::move(folder),
                        .identity = files.identity,
                        .removed = [this, files] { removed_.sweep(files.sweep); }});
  }
  for (const SweepFiles& files : wanted.lost_sweeps) {
    fs::path folder = folders_.Sweep(files.sweep);
    removals.push_back({.name = "lost sweep " + folder.string(),
                        .folder = std::move(folder),
                        .identity = files.identity,
                        .is_lost = true,
                        .removed = [] {}});
  }
  return removals;
}

void Remover::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto called = [this] {
      return stop_ || !queue_.empty() || !discarded_.empty() || !inventories_.empty();
    };
    if (!try_again_at_)
      changed_.wait(lock, called);
    else if (!changed_.wait_until(lock, *try_again_at_, called))
      TryFailedAgain();
    if (!inventories_.empty()) {
      const v1::Inventory inventory = std::move(inventories_.front());
      inventories_.pop_front();
      lock.unlock();
      ReportMissing(inventory);
      lock.lock();
      continue;
    }
    if (!discarded_.empty()) {
      const fs::path folder = std::move(discarded_.front());
      discarded_.pop_front();
      lock.unlock();
      std::error_code ignored;
      fs::remove_all(folder, ignored);
      lock.lock();
      continue;
    }
    if (stop_) return;
    if (queue_.empty()) continue;
    const Removal removal = entries_.at(queue_.front()).removal;
    queue_.pop_front();
    current_ = removal.name;
    lock.unlock();
    const std::string problem = Remove(removal);
    lock.lock();
    current_.clear();
    OnRemoved(removal.name, problem);
    if (!problem.empty()) continue;
    // Called after OnRemoved(): FindMissing() may erase the entry, so that the deletion is reported
    // again.
    lock.unlock();
    removal.removed();
    lock.lock();
  }
}

void Remover::TryFailedAgain() {
  try_again_at_.reset();
  for (auto& [name, entry] : entries_) {
    if (entry.state == State::kFailed) Queue(entry);
  }
}

// A queued entry is never erased, even if it is no longer wanted.
void Remover::OnRemoved(const std::string& name, const std::string& problem) {
  Entry& entry = entries_.at(name);
  entry.state = problem.empty() ? State::kDone : State::kFailed;
  if (problem.empty()) return;
  if (!std::exchange(entry.is_failure_logged, true))
    logging::Error("cannot delete the {}; trying again every minute: {}", name, problem);
  if (!try_again_at_) try_again_at_ = std::chrono::steady_clock::now() + kTryAgain;
}

std::set<SweepFiles> ListSweeps(const gang::Folders& folders) {
  std::set<SweepFiles> sweeps;
  std::error_code failed;
  for (auto entry = fs::directory_iterator(folders.Sweeps(), failed);
       !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    std::string_view id = name;
    if (id.starts_with(checkpoints::kRemovedPrefix))
      id.remove_prefix(checkpoints::kRemovedPrefix.size());
    if (!id.starts_with('s')) continue;
    id.remove_prefix(1);
    uint64_t sweep = 0;
    const auto read = std::from_chars(id.begin(), id.end(), sweep);
    if (read.ec != std::errc() || read.ptr != id.end()) continue;
    uint64_t identity = 0;
    const Result<std::string> mark = gang::ReadSweepMark(entry->path());
    if (mark.ok()) std::from_chars(mark->data(), mark->data() + mark->size(), identity);
    sweeps.insert({sweep, identity});
  }
  return sweeps;
}

}  // namespace attune::agent
