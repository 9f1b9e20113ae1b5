#include "executor/health/health_watch.h"

#include <utility>

namespace attune::agent {

HealthWatch::HealthWatch(HealthCheck check, std::function<void(const HostHealth&)> looked,
                         std::chrono::milliseconds every)
    : check_(std::move(check)),
      looked_(std::move(looked)),
      every_(every),
      thread_([this] { Run(); }) {}

HealthWatch::~HealthWatch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void HealthWatch::OnDiskFull(uint64_t room_bytes, gang::BootClock::time_point now) {
  if (!check_.judges_disk()) return;
  const std::lock_guard lock(mutex_);
  full_.Note(room_bytes, now);
  look_now_ = true;
  changed_.notify_all();
}

HostHealth HealthWatch::Latest(gang::BootClock::time_point now) const {
  const std::lock_guard lock(mutex_);
  HostHealth latest = latest_;
  latest.Add(full_.Problem(check_.data_dir(), now));
  if (!at_.empty() && now - since_ >= kPatience)
    latest.problem =
        at_ + " has not answered for " + std::to_string(kPatience / std::chrono::seconds(1)) + " s";
  return latest;
}

void HealthWatch::Run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    look_now_ = false;
    lock.unlock();
    const gang::BootClock::time_point began = gang::BootClock::now();
    const HostHealth seen = check_.Look([this](std::string at) {
      const std::lock_guard begins(mutex_);
      at_ = std::move(at);
      since_ = gang::BootClock::now();
    });
    lock.lock();
    latest_ = seen;
    full_.OnLook(seen.disk_free_bytes, began);
    at_.clear();
    lock.unlock();
    looked_(seen);
    lock.lock();
    changed_.wait_for(lock, every_, [this] { return stop_ || look_now_; });
  }
}

}  // namespace attune::agent
