#include "server/code_keeper.h"

#include <algorithm>
#include <chrono>
#include <variant>

#include "base/result.h"
#include "logging/log.h"

namespace attune::server {
namespace {

constexpr std::chrono::hours kEvery{1};
constexpr std::chrono::seconds kCodeRetryDelay{10};  // such as while the tables are rebuilt

}  // namespace

CodeKeeper::CodeKeeper(CodeStorage& storage, Reader& reader)
    : storage_(storage), reader_(reader), thread_([this] { Run(); }) {}

CodeKeeper::~CodeKeeper() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void CodeKeeper::OnStarted(const Brain&) { Wake(); }

void CodeKeeper::OnDurable(std::span<const Event> events, const Brain&) {
  const bool is_deleted = std::ranges::any_of(
      events, [](const Event& event) { return std::holds_alternative<SweepDeleted>(event.fact); });
  if (is_deleted) Wake();
}

void CodeKeeper::Wake() {
  const std::lock_guard lock(mutex_);
  due_ = true;
  changed_.notify_all();
}

void CodeKeeper::Run() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return due_ || stop_; });  // the reader has no database before
  while (!stop_) {
    due_ = false;
    lock.unlock();
    const Status removed = storage_.RemoveUnused([this] { return reader_.CodeDigests(); });
    const bool again = !removed.ok() && removed.error().code == ErrorCode::kUnavailable;
    if (!removed.ok() && !again)
      logging::Warn("unused code was not deleted: {}", removed.error().message);
    lock.lock();
    changed_.wait_for(lock, again ? std::chrono::seconds(kCodeRetryDelay) : kEvery,
                      [this] { return due_ || stop_; });
  }
}

}  // namespace attune::server
