#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace attune::server {

// A few threads that do jobs in the order in which they came.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();  // stops

  // Any thread. Does nothing once the pool stops.
  void Run(std::function<void()> job);

  // Drops what has not begun and waits for what has.
  void Stop();

 private:
  void Work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace attune::server
