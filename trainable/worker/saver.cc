#include "trainable/worker/saver.h"

#include <utility>

#include "attune/context.h"
#include "channel/messages.h"

namespace attune::inline sdk::trainable {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Saver::~Saver() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Saver::Commit(std::unique_ptr<CheckpointWriter> writer) {
  {
    const std::lock_guard lock(mutex_);
    writer_ = std::move(writer);
  }
  changed_.notify_all();
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
}

void Saver::Send(const ReportLine& report, std::string progress) {
  std::string line = ToLine(report);
  std::unique_lock lock(mutex_);
  Await(lock, [this] { return waiting_.size() < kMaxWaitingBytes; });
  if (writer_ != nullptr) {
    waiting_ += line;
    return channel_.SendSoon(std::move(progress));
  }
  line += progress;
  report.waits ? channel_.Send(std::move(line)) : channel_.SendSoon(std::move(line));
}

void Saver::NoteSilence(std::chrono::milliseconds silence) {
  const std::lock_guard lock(mutex_);
  silent_until_ = Clock::now() + silence;
}

void Saver::Drain() {
  std::unique_lock lock(mutex_);
  Await(lock, [this] { return writer_ == nullptr; });
}

template <typename Condition>
void Saver::Await(std::unique_lock<std::mutex>& lock, Condition condition) {
  if (condition()) return;
  channel_.Send(ToLine(channel::Heartbeat{Context::kSaveSilence}));
  changed_.wait(lock, condition);
}

void Saver::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return writer_ != nullptr || stop_; });
    if (writer_ == nullptr) return;
    lock.unlock();
    std::string committed = ToLine(writer_->Commit());  // only this thread resets writer_
    lock.lock();
    channel_.Send(std::move(committed));
    if (!waiting_.empty()) channel_.Send(std::exchange(waiting_, {}));
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(silent_until_ - Clock::now());
    if (left.count() > 0) channel_.Send(ToLine(channel::Heartbeat{left}));
    writer_.reset();
    changed_.notify_all();
  }
}

}  // namespace attune::inline sdk::trainable
