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

// How many requests may wait at once, each on a thread, and for how long.
struct WaitLimits {
  size_t requests_max = 0;
  std::chrono::seconds longest;
  const char* readers;  // names the waiting clients in messages: "readers of logs"
};

inline constexpr WaitLimits kLogWaitLimits{64, std::chrono::seconds(5), "readers of logs"};
// Each waiting request may hold a whole piece in memory.
inline constexpr WaitLimits kPieceWaitLimits{16, std::chrono::seconds(25),
                                             "readers of checkpoints"};

// The open requests to executors. `Answer` is a message with the number of its request and, if the
// executor cannot answer, an error. Any thread.
template <class Answer>
class Requests {
 public:
  explicit Requests(const WaitLimits& patience) : limits_(patience) {}

  // Calls `ask`, which sends the request, with a new number. Waits for the answer with this number.
  // kUnavailable: `ask` returns false, the executor disconnects, the time is over, or too many
  // requests wait already. kNotFound: the answer has an error.
  Result<Answer> Await(const std::string& executor,
                       const std::function<bool(uint64_t request)>& ask) {
    const auto unavailable = [](std::string message) {
      return Error{ErrorCode::kUnavailable, std::move(message)};
    };
    uint64_t request = 0;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.size() >= limits_.requests_max)
        return unavailable(std::to_string(limits_.requests_max) + " " + limits_.readers +
                           " are waiting for executors already; try again in a moment");
      request = ++last_;
      waiting_[request].executor = executor;
    }
    const bool asked = ask(request);
    std::unique_lock lock(mutex_);
    Waiting& waiting = waiting_.at(request);
    if (asked)
      changed_.wait_for(lock, limits_.longest, [&] { return waiting.answer || waiting.gone; });
    Waiting result = std::move(waiting);
    waiting_.erase(request);
    lock.unlock();
    if (!asked)
      return unavailable(
          "executor " + executor +
          ", which has the data, is not connected; start it again on the same data folder");
    if (result.gone)
      return unavailable("executor " + executor + " disconnected before it answered; try again");
    if (!result.answer)
      return unavailable("executor " + executor + " did not answer within " +
                         std::to_string(limits_.longest.count()) + " s");
    if (!result.answer->error().empty())
      return Error{ErrorCode::kNotFound, "executor " + executor + ": " +
                                             CutEnd(result.answer->error(), kErrorTextBytesMax)};
    return *std::move(result.answer);
  }

  // Delivers an answer. Drops it if nobody waits for it, or if it comes from another executor than
  // the request was sent to. An empty `executor` means that the sender is unknown.
  void OnAnswer(const Answer& answer, const std::string& executor = "") {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_.find(answer.request());
    if (found == waiting_.end()) return;
    if (!executor.empty() && found->second.executor != executor) return;
    found->second.answer = answer;
    changed_.notify_all();
  }

  // Ends the requests to an executor whose stream has closed.
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

  const WaitLimits limits_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Waiting> waiting_;  // under mutex_
  uint64_t last_ = 0;
};

}  // namespace attune::server
