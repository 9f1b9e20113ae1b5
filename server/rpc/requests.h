#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/message_limits.h"
#include "base/result.h"

namespace attune::server {

// So many may wait at once, each of whom holds a thread, and for so long.
struct Patience {
  size_t requests_max = 0;
  std::chrono::seconds longest;
  const char* readers;  // who waits, for people: "readers of logs"
};

inline constexpr Patience kLogPatience{64, std::chrono::seconds(5), "readers of logs"};
// The answer of each has in memory as much as a piece has.
inline constexpr Patience kPiecePatience{16, std::chrono::seconds(25), "readers of checkpoints"};

// What executors were asked for and have not brought yet. `Answer`: a message with the number of
// its request, and with an error where the executor cannot bring it. Any thread.
template <class Answer>
class Requests {
 public:
  explicit Requests(const Patience& patience) : patience_(patience) {}

  // Calls `ask` with a new number, and waits for that answer. kUnavailable: `ask` says false, the
  // executor goes away, it takes too long, or too many wait already. kNotFound: it has an error.
  Result<Answer> Await(const std::string& executor,
                       const std::function<bool(uint64_t request)>& ask) {
    const auto unavailable = [](std::string message) {
      return Error{ErrorCode::kUnavailable, std::move(message)};
    };
    uint64_t request = 0;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.size() >= patience_.requests_max)
        return unavailable(std::to_string(patience_.requests_max) + " " + patience_.readers +
                           " wait for their executors already: try again in a moment");
      request = ++last_;
      waiting_[request].executor = executor;
    }
    const bool asked = ask(request);
    std::unique_lock lock(mutex_);
    Waiting& waiting = waiting_.at(request);
    if (asked)
      changed_.wait_for(lock, patience_.longest, [&] { return waiting.answer || waiting.gone; });
    Waiting came = std::move(waiting);
    waiting_.erase(request);
    lock.unlock();
    if (!asked)
      return unavailable(
          "executor " + executor +
          ", which has it, is not connected: start it again on the same data folder");
    if (came.gone) return unavailable("executor " + executor + " has gone before it answered");
    if (!came.answer)
      return unavailable("executor " + executor + " did not answer within " +
                         std::to_string(patience_.longest.count()) + " s");
    if (!came.answer->error().empty())
      return Error{ErrorCode::kNotFound, "executor " + executor + ": " +
                                             CutEnd(came.answer->error(), kErrorTextBytesMax)};
    return *std::move(came.answer);
  }

  // One that nobody waits for is dropped, and one of another executor than was asked: `executor`,
  // where that is known.
  void OnAnswer(const Answer& answer, const std::string& executor = "") {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_.find(answer.request());
    if (found == waiting_.end()) return;
    if (!executor.empty() && found->second.executor != executor) return;
    found->second.answer = answer;
    changed_.notify_all();
  }

  // Its stream is closed.
  void OnGone(const std::string& executor) {
    const std::lock_guard lock(mutex_);
    for (auto& [request, waiting] : waiting_) waiting.gone |= waiting.executor == executor;
    changed_.notify_all();
  }

 private:
  struct Waiting {
    std::string executor;
    std::optional<Answer> answer;
    bool gone = false;
  };

  const Patience patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Waiting> waiting_;  // under mutex_
  uint64_t last_ = 0;
};

}  // namespace attune::server
