#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace attune {

// Work that other threads hand to one.
class Mailbox {
 public:
  using Clock = std::chrono::steady_clock;

  void Post(std::function<void()> work) {
    // Rung under the lock: once the work is done, this mailbox may be gone.
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    arrived_.notify_one();
  }

  // Waits for work until `deadline` and does all there is, in order.
  void Run(Clock::time_point deadline) {
    std::vector<std::function<void()>> work;
    {
      std::unique_lock lock(mutex_);
      const auto ready = [this] { return !work_.empty(); };
      // wait_until() would overflow on the end of time.
      if (deadline == Clock::time_point::max()) {
        arrived_.wait(lock, ready);
      } else {
        arrived_.wait_until(lock, deadline, ready);
      }
      work.swap(work_);
    }
    for (const auto& each : work) each();
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::function<void()>> work_;  // under mutex_
};

}  // namespace attune
