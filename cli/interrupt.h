#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>

namespace attune::cli {

// The request of Ctrl-C or SIGTERM that this process ends. Thread-safe.
class Interrupt {
 public:
  // The Interrupt that SIGINT and SIGTERM of this process request. The first call installs the
  // signal handlers. A signal without a listener, and any second signal, end the process at once
  // with exit code 130. Child processes that execute another program get the default handlers.
  static Interrupt& OfProcess();

  void Request();
  bool requested() const;
  void Wait();                // until requested
  bool has_listener() const;  // a thread waits, or a Subscription exists

  // Runs `wake` on another thread when the end is requested, or at once if it already was.
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
  std::condition_variable changed_;
  bool requested_ = false;
  int waiting_ = 0;
  int next_key_ = 0;
  std::map<int, std::function<void()>> wakes_;
};

}  // namespace attune::cli
