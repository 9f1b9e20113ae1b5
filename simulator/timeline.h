#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "core/base/ids.h"

namespace attune::simulate {

inline constexpr int64_t kSecondUs = 1'000'000;

inline constexpr int64_t kLastUs = std::numeric_limits<int64_t>::max() / 2;
inline constexpr double kMaxSeconds = 1e9;  // longest time span: about thirty years

// Values above kMaxSeconds become kMaxSeconds; negative values and NaN become 0.
inline int64_t ToMicroseconds(Seconds seconds) {
  const double span = seconds.value > 0 ? std::min(seconds.value, kMaxSeconds) : 0;
  return static_cast<int64_t>(std::llround(span * static_cast<double>(kSecondUs)));
}

// A queue of actions in virtual time. Actions run in the order of their times; actions with equal
// times run in the order in which they were added. For one thread only.
class Timeline {
 public:
  using Action = std::function<void()>;

  Time now() const { return now_; }
  bool empty() const { return heap_.empty(); }

  void ScheduleAt(Time when, Action action) {
    heap_.push_back({std::max(when, now_), ++last_, std::move(action)});
    std::push_heap(heap_.begin(), heap_.end(), IsLater);
  }
  // Time never passes kLastUs. REQUIRES: `us` was computed by ToMicroseconds.
  void ScheduleAfter(int64_t us, Action action) {
    ScheduleAt(Time{std::min(now_.us + us, kLastUs)}, std::move(action));
  }

  // REQUIRES: not empty.
  void RunNext() {
    ATTUNE_CHECK(!heap_.empty());
    std::pop_heap(heap_.begin(), heap_.end(), IsLater);
    const Entry next = std::move(heap_.back());
    heap_.pop_back();
    now_ = next.when;
    next.action();
  }

 private:
  struct Entry {
    Time when;
    uint64_t order;
    Action action;
  };
  static bool IsLater(const Entry& a, const Entry& b) {
    return a.when == b.when ? a.order > b.order : a.when > b.when;
  }

  Time now_;
  uint64_t last_ = 0;
  std::vector<Entry> heap_;
};

}  // namespace attune::simulate
