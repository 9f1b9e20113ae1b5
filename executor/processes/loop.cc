#include "executor/processes/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace attune::gang {
namespace {

constexpr int kEventsPerWait = 64;

int OrThrow(int fd, const char* what) {
  if (fd < 0) throw std::system_error(errno, std::generic_category(), what);
  return fd;
}

}  // namespace

Loop::Subscription& Loop::Subscription::operator=(Subscription&& other) noexcept {
  if (this != &other) {
    Reset();
    loop_ = std::exchange(other.loop_, nullptr);
    id_ = other.id_;
  }
  return *this;
}

void Loop::Subscription::Reset() {
  if (Loop* loop = std::exchange(loop_, nullptr)) loop->Drop(id_);
}

Loop::Loop()
    : epoll_(OrThrow(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wakeup_(OrThrow(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 0}};
  OrThrow(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wakeup_.get(), &event), "epoll_ctl");
}

Loop::~Loop() = default;

Loop::Subscription Loop::Watch(int fd, uint32_t events, Ready ready) {
  const uint64_t id = next_id_++;
  epoll_event event{.events = events, .data = {.u64 = id}};
  OrThrow(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
  watchers_.emplace(id, std::make_unique<Watcher>(fd, std::move(ready)));
  return Subscription(this, id);
}

void Loop::Change(const Subscription& watch, uint32_t events) {
  const auto found = watchers_.find(watch.id_);
  if (found == watchers_.end()) return;
  epoll_event event{.events = events, .data = {.u64 = watch.id_}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, found->second->fd, &event);
}

Loop::Subscription Loop::CallAfter(Clock::duration delay, std::function<void()> expired) {
  const uint64_t id = next_id_++;
  const Clock::time_point due = Clock::now() + delay;
  timers_.emplace(std::pair(due, id), std::move(expired));
  timer_due_.emplace(id, due);
  return Subscription(this, id);
}

void Loop::Drop(uint64_t id) {
  if (const auto timer = timer_due_.find(id); timer != timer_due_.end()) {
    timers_.erase({timer->second, id});
    timer_due_.erase(timer);
  } else if (auto watcher = watchers_.extract(id)) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watcher.mapped()->fd, nullptr);
    dropped_.push_back(std::move(watcher.mapped()));
  }
}

void Loop::Post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(work));
    if (posted_.size() > 1) return;  // the first Post() has woken the loop
  }
  eventfd_write(wakeup_.get(), 1);
}

void Loop::Run() {
  std::array<epoll_event, kEventsPerWait> events;
  while (!quit_) {
    const int count =
        epoll_wait(epoll_.get(), events.data(), events.size(), MillisecondsToNextTimer());
    for (int i = 0; i < count; ++i) {
      const uint64_t id = events[i].data.u64;
      if (id == 0) {
        RunPosted();
      } else if (const auto found = watchers_.find(id); found != watchers_.end()) {
        found->second->ready(events[i].events);
      }
    }
    RunTimers();
    dropped_.clear();
  }
}

int Loop::MillisecondsToNextTimer() const {
  if (timers_.empty()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first.first - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 3'600'000));
}

void Loop::RunTimers() {
  const Clock::time_point now = Clock::now();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    auto timer = timers_.extract(timers_.begin());
    timer_due_.erase(timer.key().second);
    timer.mapped()();
  }
}

void Loop::RunPosted() {
  eventfd_t count;
  eventfd_read(wakeup_.get(), &count);
  std::vector<std::function<void()>> work;
  {
    const std::lock_guard lock(mutex_);
    work.swap(posted_);
  }
  for (const auto& each : work) each();
}

}  // namespace attune::gang
