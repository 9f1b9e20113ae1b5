#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace attune::server {

// A bounded queue and the threads that work on it. The thread that became idle last is woken first,
// because its data may still be in the processor's caches.
class Lane {
 public:
  // REQUIRES: both are at least 1. `nice`: the threads' niceness (setpriority(2)).
  Lane(int threads, size_t most_queued, int nice = 0);
  ~Lane();  // calls Stop

  // Queues work. Returns false if most_queued are waiting already. Any thread.
  bool Submit(std::function<void()> work);

  // Finishes the queued work and ends the threads.
  void Stop();

 private:
  struct Idle {
    std::condition_variable wake;
    bool asked = false;
  };
  void Run();
  void Ask();  // wakes the thread that became idle last, if any is idle

  const size_t most_queued_;
  std::mutex mutex_;
  std::vector<Idle*> idle_;  // guarded by mutex_, like all below; the last idle one is at the back
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace attune::server
