#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>

namespace attune::cli {

// A person's wish that this process ends: Ctrl-C or SIGTERM. Thread-safe.
class Interrupt {
 public:
  // The process's own, told by SIGINT and SIGTERM; installs their handlers at the first call. A
  // signal that nobody waits or subscribes for, and the second one in any case, end the process at
  // once with exit code 130. Children get default handlers back when they execute another program.
  static Interrupt& OfProcess();

  void Request();
  bool requested() const;
  void Wait();         // until requested
  bool heard() const;  // somebody waits or subscribes

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
  std::condition_variable changed_;
  bool requested_ = false;
  int waiting_ = 0;
  int next_key_ = 0;
  std::map<int, std::function<void()>> wakes_;
};

}  // namespace attune::cli
