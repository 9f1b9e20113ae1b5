#include "executor/transfer/remover.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace attune::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kTryAgain{1};

}  // namespace

// Why it could not be deleted; empty when it is gone, was not there, or is another server's.
std::string Remover::Remove(const Removal& removal) {
  const fs::path& folder = removal.folder;
  if (folder.empty())
    return "it is not where this executor keeps its checkpoints; delete it by hand";
  const fs::path doomed =
      folder.parent_path() / (std::string(gang::kRemovedPrefix) + folder.filename().string());
  std::error_code failed;
  fs::remove_all(doomed, failed);  // of a deletion that was interrupted
  if (failed) return failed.message();
  if (removal.owner && fs::exists(folder, failed)) {
    const gang::OrError<std::string> owner = gang::ReadOwner(folder);
    if (!owner.ok()) return owner.error();
    if (owner.value() != *removal.owner) {
      spdlog::warn("the {} stays: nothing in it says that it is of the server that has deleted it",
                   removal.name);
      return "";
    }
  }
  fs::rename(folder, doomed, failed);
  if (failed && failed != std::errc::no_such_file_or_directory) return failed.message();
  fs::remove_all(doomed, failed);
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

void Remover::Want(const Removals& wanted) {
  std::vector<Removal> removals = ToRemovals(wanted);
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [&](const auto& known) {
    return known.second.state != State::kQueued &&
           std::ranges::find(removals, known.first, &Removal::name) == removals.end();
  });
  for (Removal& removal : removals) {
    const auto [entry, is_new] = known_.try_emplace(removal.name);
    if (!is_new && entry->second.state != State::kFailed) continue;
    entry->second.state = State::kQueued;
    queue_.push_back(std::move(removal));
  }
  changed_.notify_all();
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
  for (const uint64_t sweep : wanted.sweeps) {
    fs::path folder = folders_.Sweep(sweep);
    removals.push_back({.name = "sweep " + folder.string(),
                        .folder = std::move(folder),
                        .owner = wanted.server,
                        .removed = [this, sweep] { removed_.sweep(sweep); }});
  }
  return removals;
}

void Remover::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto called = [this] { return stop_ || !queue_.empty(); };
    if (failed_.empty())
      changed_.wait(lock, called);
    else if (!changed_.wait_until(lock, try_again_at_, called))
      TryFailedAgain();
    if (stop_) return;
    if (queue_.empty()) continue;
    Removal removal = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    const std::string problem = Remove(removal);
    if (problem.empty()) removal.removed();
    lock.lock();
    OnRemoved(std::move(removal), problem);
  }
}

void Remover::TryFailedAgain() {
  for (Removal& removal : std::exchange(failed_, {})) {
    const auto known = known_.find(removal.name);
    if (known == known_.end() || known->second.state != State::kFailed) continue;
    known->second.state = State::kQueued;
    queue_.push_back(std::move(removal));
  }
}

void Remover::OnRemoved(Removal removal, const std::string& problem) {
  Entry& entry = known_[removal.name];
  entry.state = problem.empty() ? State::kDone : State::kFailed;
  if (problem.empty()) return;
  if (!std::exchange(entry.complained, true))
    spdlog::error("cannot delete the {}, and goes on trying: {}", removal.name, problem);
  if (failed_.empty()) try_again_at_ = std::chrono::steady_clock::now() + kTryAgain;
  failed_.push_back(std::move(removal));
}

}  // namespace attune::agent
