#include "executor/transfer/checkpoint_remover.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace attune::agent {
namespace {

namespace fs = std::filesystem;

// Why it could not be deleted; empty when it is gone, or was not there.
std::string Remove(const gang::Folders& folders, const v1::CheckpointRemoval& removal) {
  const fs::path folder = folders.Checkpoints({.sweep = removal.sweep(), .trial = removal.trial()});
  const std::string name = gang::CheckpointFolder(removal.step(), removal.attempt());
  if (removal.path() != folder / name) {
    return "it is not where this executor keeps it, " + (folder / name).string() +
           "; delete it by hand";
  }
  const fs::path doomed = folder / (".removed-" + name);
  std::error_code failed;
  fs::remove_all(doomed, failed);  // of a deletion that was interrupted
  if (!failed) fs::rename(folder / name, doomed, failed);
  if (failed && failed != std::errc::no_such_file_or_directory) return failed.message();
  fs::remove_all(doomed, failed);
  return failed ? failed.message() : "";
}

}  // namespace

CheckpointRemover::CheckpointRemover(gang::Folders folders, Removed removed)
    : folders_(std::move(folders)), removed_(std::move(removed)), thread_([this] { Run(); }) {}

CheckpointRemover::~CheckpointRemover() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void CheckpointRemover::Want(
    const google::protobuf::RepeatedPtrField<v1::CheckpointRemoval>& removals) {
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [&](const auto& known) {
    return known.second.state != State::kQueued &&
           std::ranges::none_of(removals,
                                [&](const auto& each) { return each.path() == known.first; });
  });
  for (const v1::CheckpointRemoval& removal : removals) {
    const auto [entry, is_new] = known_.try_emplace(removal.path());
    if (!is_new && entry->second.state != State::kFailed) continue;
    entry->second.state = State::kQueued;
    queue_.push_back(removal);
  }
  changed_.notify_all();
}

void CheckpointRemover::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (stop_) return;
    const v1::CheckpointRemoval removal = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    const std::string problem = Remove(folders_, removal);
    if (problem.empty()) removed_(removal);
    lock.lock();
    OnRemoved(removal.path(), problem);
  }
}

void CheckpointRemover::OnRemoved(const std::string& path, const std::string& problem) {
  Entry& entry = known_[path];
  entry.state = problem.empty() ? State::kDone : State::kFailed;
  if (problem.empty() || std::exchange(entry.complained, true)) return;
  spdlog::error("cannot delete the checkpoint {}: {}", path, problem);
}

}  // namespace attune::agent
