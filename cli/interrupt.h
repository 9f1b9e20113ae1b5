#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>

namespace attune::cli {

// A person's wish that this process ends: Ctrl-C or SIGTERM. Thread-safe.
class Interrupt {
 public:
  // The process's own, told by SIGINT and SIGTERM; installs their handlers at the first call. The
  // second signal ends the process at once with exit code 130. Children get default handlers back
  // when they execute another program.
  static Interrupt& OfProcess();

  void Request();
  bool requested() const;
  void Wait() const;  // until requested

  // Runs `wake` at the request, on another thread, or at once if it has been made already.
  class Subscription {
   public:
    Subscription(Interrupt& interrupt, std::function<void()> wake);
    ~Subscription();
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;

   private:
    Interrupt& interrupt_;
    int key_;
  };

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool requested_ = false;
  int next_key_ = 0;
  std::map<int, std::function<void()>> wakes_;
};

}  // namespace attune::cli
