#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "system/unique_fd.h"

namespace attune::gang {

// An event loop on epoll: descriptors, timers, and work posted by other threads.
//
// Post() is thread-safe. All other functions must be called on the thread in Run(), or before it. A
// callback may add and remove watches and timers, including its own.
class Loop {
 public:
  using Clock = std::chrono::steady_clock;
  using Ready = std::function<void(uint32_t epoll_events)>;

  // A watched descriptor or a pending timer. The destructor ends it; it must not outlive the loop.
  // A watch must end before its descriptor is closed, so declare it after the descriptor.
  class Subscription {
   public:
    Subscription() = default;
    Subscription(Subscription&& other) noexcept
        : loop_(std::exchange(other.loop_, nullptr)), id_(other.id_) {}
    Subscription& operator=(Subscription&& other) noexcept;
    ~Subscription() { Reset(); }

    void Reset();
    explicit operator bool() const { return loop_ != nullptr; }

   private:
    friend class Loop;
    Subscription(Loop* loop, uint64_t id) : loop_(loop), id_(id) {}

    Loop* loop_ = nullptr;
    uint64_t id_ = 0;
  };

  Loop();
  ~Loop();

  // `events` as for epoll_ctl, level-triggered.
  [[nodiscard]] Subscription Watch(int fd, uint32_t events, Ready ready);
  void Change(const Subscription& watch, uint32_t events);

  [[nodiscard]] Subscription CallAfter(Clock::duration delay, std::function<void()> expired);

  void Post(std::function<void()> work);

  // Runs callbacks until Quit().
  void Run();
  void Quit() { quit_ = true; }

 private:
  struct Watcher {
    int fd;
    Ready ready;
  };

  void Drop(uint64_t id);
  int MillisecondsToNextTimer() const;
  void RunTimers();
  void RunPosted();

  UniqueFd epoll_;
  UniqueFd wakeup_;
  uint64_t next_id_ = 1;  // 0 is the id of the wakeup descriptor
  std::unordered_map<uint64_t, std::unique_ptr<Watcher>> watchers_;
  std::map<std::pair<Clock::time_point, uint64_t>, std::function<void()>> timers_;
  std::unordered_map<uint64_t, Clock::time_point> timer_due_;
  // Watchers that were removed during a callback, perhaps their own. They are destroyed when no
  // callback is running.
  std::vector<std::unique_ptr<Watcher>> dropped_;
  bool quit_ = false;

  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;  // under mutex_
};

}  // namespace attune::gang
