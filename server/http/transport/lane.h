#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace attune::server {

// A queue with a bound, and the threads that work on it. The thread that has become idle last is
// asked first: what it needs is still in the processor's caches.
class Lane {
 public:
  // REQUIRES: both are at least 1. `nice`: the threads' niceness (setpriority(2)).
  Lane(int threads, size_t most_queued, int nice = 0);
  ~Lane();  // stops

  // False when so many wait already. Any thread.
  bool Submit(std::function<void()> work);

  // What is queued is done, and then the threads end.
  void Stop();

 private:
  struct Idle {
    std::condition_variable wake;
    bool asked = false;
  };
  void Run();
  void Ask();  // the thread that became idle last, if one is

  const size_t most_queued_;
  std::mutex mutex_;
  std::vector<Idle*> idle_;  // guarded by mutex_, as is all below; the last one first
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace attune::server
