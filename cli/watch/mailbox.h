#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

namespace attune::cli {

// Letters from other threads to one reader.
template <class Letter>
class Mailbox {
 public:
  void Push(Letter letter) {
    const std::lock_guard lock(mutex_);
    letters_.push_back(std::move(letter));
    changed_.notify_one();
  }

  // Ends the reader's wait without a letter.
  void Wake() {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_one();
  }

  // All letters there are, waiting until `deadline` for the first.
  std::vector<Letter> TakeUntil(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline, [this] { return woken_ || !letters_.empty(); });
    woken_ = false;
    return std::exchange(letters_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  std::vector<Letter> letters_;
};

}  // namespace attune::cli
