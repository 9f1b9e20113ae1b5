#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace attune::server {

// A queue with a bound, and the threads that work on it.
class Lane {
 public:
  // REQUIRES: both are at least 1.
  Lane(int threads, size_t most_queued);
  ~Lane();  // stops

  // False when so many wait already. Any thread.
  bool Submit(std::function<void()> work);

  // What is queued is done, and then the threads end.
  void Stop();

 private:
  void Run();

  const size_t most_queued_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace attune::server
