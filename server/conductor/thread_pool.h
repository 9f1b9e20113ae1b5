#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace attune::server {

// A few threads that run jobs in order of arrival.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();  // calls Stop

  // Queues a job; ignores it after Stop. Any thread.
  void Run(std::function<void()> job);

  // Drops the queued jobs and waits for the running ones.
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
