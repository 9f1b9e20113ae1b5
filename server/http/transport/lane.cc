#include "server/http/transport/lane.h"

#include <sys/resource.h>

#include <utility>

namespace attune::server {

Lane::Lane(int threads, size_t most_queued, int nice) : most_queued_(most_queued) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this, nice] {
      // on Linux this affects only the calling thread
      if (nice != 0) ::setpriority(PRIO_PROCESS, 0, nice);
      Run();
    });
  }
}

Lane::~Lane() { Stop(); }

bool Lane::Submit(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (stopping_ || queue_.size() >= most_queued_) return false;
  queue_.push_back(std::move(work));
  Ask();
  return true;
}

void Lane::Ask() {
  if (idle_.empty()) return;
  idle_.back()->asked = true;
  idle_.back()->wake.notify_one();
  idle_.pop_back();
}

void Lane::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    while (!idle_.empty()) Ask();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void Lane::Run() {
  Idle idle;
  std::unique_lock lock(mutex_);
  for (;;) {
    while (queue_.empty()) {
      if (stopping_) return;
      idle.asked = false;
      idle_.push_back(&idle);
      idle.wake.wait(lock, [&] { return idle.asked; });
    }
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
}

}  // namespace attune::server
