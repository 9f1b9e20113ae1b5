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
    stopped_.notify_all();
  }
  thread_.join();
}

HostHealth HealthWatch::Latest(gang::BootClock::time_point now) const {
  const std::lock_guard lock(mutex_);
  HostHealth latest = latest_;
  if (!at_.empty() && now - since_ >= kPatience)
    latest.problem =
        at_ + " has not answered for " + std::to_string(kPatience / std::chrono::seconds(1)) + " s";
  return latest;
}

void HealthWatch::Run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    lock.unlock();
    const HostHealth seen = check_.Look([this](std::string at) {
      const std::lock_guard begins(mutex_);
      at_ = std::move(at);
      since_ = gang::BootClock::now();
    });
    lock.lock();
    latest_ = seen;
    at_.clear();
    lock.unlock();
    looked_(seen);
    lock.lock();
    stopped_.wait_for(lock, every_, [this] { return stop_; });
  }
}

}  // namespace attune::agent
