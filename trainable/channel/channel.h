#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <variant>

#include "attune/error.h"
#include "channel/line_reader.h"
#include "system/unique_fd.h"
#include "trainable/base/sockets.h"
#include "trainable/channel/messages.h"

namespace attune::inline sdk::trainable {

// A rank's end of the worker channel. One thread of its own reads and writes, so that training
// neither waits for the executor nor misses its end.
//
// Send(), SendSoon() and Flush() may be called from any thread, Receive(), Poll() and Await() from
// one.
class Channel {
 public:
  // Unsent bytes above which Send() waits: an executor that long behind is as good as gone.
  static constexpr std::size_t kMaxPendingBytes = 64 << 20;

  // `on_executor_gone` is called on the channel's thread, once, when the executor closes its end
  // before Leave(). It may end the process.
  Channel(UniqueFd socket, std::function<void()> on_executor_gone);
  ~Channel();

  // Lines that are not urgent and follow others within this time go in one piece, when it is over:
  // each piece wakes the executor, which costs who sends it more than all the rest.
  static constexpr std::chrono::milliseconds kGathering{2};

  // Sends lines, of ToLine(), or queues them. Does not wait for the executor to read them.
  void Send(std::string lines);

  // The same, but that they may be gathered first: see kGathering.
  void SendSoon(std::string lines);

  // Waits until everything queued is in the socket, or the executor is gone; false after `timeout`.
  bool Flush(std::chrono::milliseconds timeout);
  void Flush();

  // Waits for the next message. Throws attune::Error when the executor said something malformed or
  // is gone.
  FromExecutor Receive();

  // The next message if there is one already. Throws as Receive().
  std::optional<FromExecutor> Poll();

  // Waits for the next message of a type; messages of types unknown to this version are skipped,
  // any other throws.
  template <typename T>
  T Await(const char* name) {
    while (true) {
      FromExecutor message = Receive();
      if (T* wanted = std::get_if<T>(&message)) return std::move(*wanted);
      if (!std::holds_alternative<channel::Unknown>(message)) {
        throw Error(std::string("channel: expected `") + name + "`, got another message");
      }
    }
  }

  // From here on the executor may close its end without consequence.
  void Leave();

  // Waits until the executor closes its end, for at most `timeout`.
  void WaitForExecutorToClose(std::chrono::milliseconds timeout);

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<FromExecutor> TakeNext(std::unique_lock<std::mutex> lock);  // of mutex_
  void Run();
  void ReadSome();
  void TakeLines();
  void Wake() const;

  // These want mutex_ locked; Queue() locks it.
  std::unique_lock<std::mutex> Queue(const std::string& lines);
  void Write();      // what the socket takes; the thread goes on with the rest
  void WriteSome();  // what the socket takes
  void WriteGathered();

  UniqueFd socket_;
  UniqueFd wake_;
  std::function<void()> on_executor_gone_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string outgoing_;  // guarded by mutex_, as is all below
  Clock::time_point written_;
  std::optional<Clock::time_point> write_at_;  // what is gathered; none: nothing is
  std::deque<FromExecutor> incoming_;
  std::exception_ptr failure_;
  bool closed_ = false;
  bool leaving_ = false;
  bool stop_ = false;

  channel::LineReader lines_;  // of the thread
  std::thread thread_;         // last: it uses all of the above
};

}  // namespace attune::inline sdk::trainable
