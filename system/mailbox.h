#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

namespace attune {

// A queue of messages ("letters") from many threads to one reader.
template <class Letter>
class Mailbox {
 public:
  using Clock = std::chrono::steady_clock;

  void Post(Letter letter) {
    // Notifies under the lock, because the reader may destroy this mailbox once it has the letter.
    const std::lock_guard lock(mutex_);
    letters_.push_back(std::move(letter));
    changed_.notify_one();
  }

  // Ends the reader's current wait, or else its next one, without a letter.
  void Wake() {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_one();
  }

  // Takes all letters in the order of posting. Waits for the first one until `deadline`.
  std::vector<Letter> TakeUntil(Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return woken_ || !letters_.empty(); };
    // wait_until() overflows on time_point::max().
    if (deadline == Clock::time_point::max()) {
      changed_.wait(lock, ready);
    } else {
      changed_.wait_until(lock, deadline, ready);
    }
    woken_ = false;
    return std::exchange(letters_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;           // under mutex_
  std::vector<Letter> letters_;  // under mutex_
};

}  // namespace attune
