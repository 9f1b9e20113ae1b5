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

// A rank's end of the worker channel. A separate thread reads and writes, so training does not wait
// for the executor, and notices its end.
//
// Send(), SendSoon() and Flush() may be called from any thread; Receive(), Poll() and Await() from
// one thread only.
class Channel {
 public:
  // Send() waits if there are more unsent bytes than this. An executor that is so far behind has
  // probably failed.
  static constexpr std::size_t kMaxPendingBytes = 64 << 20;

  // `on_executor_gone` is called once, on the channel's thread, if the executor closes its end
  // before Leave(). It may end the process.
  Channel(UniqueFd socket, std::function<void()> on_executor_gone);
  ~Channel();

  // Lines that are not urgent are collected for this time and sent together. Each write wakes the
  // executor, which costs the sender more than everything else.
  static constexpr std::chrono::milliseconds kGathering{2};

  // Sends or queues lines from ToLine(). Does not wait for the executor to read them.
  void Send(std::string lines);

  // Like Send(), but may first collect more lines for kGathering.
  void SendSoon(std::string lines);

  // Waits until all queued bytes are in the socket, or the executor is gone. Returns false after
  // `timeout`.
  bool Flush(std::chrono::milliseconds timeout);
  void Flush();

  // Waits for the next message. Throws attune::Error if the executor sent a malformed message or is
  // gone.
  FromExecutor Receive();

  // Returns the next message if one has arrived. Throws like Receive().
  std::optional<FromExecutor> Poll();

  // Waits for the next message of type T. Skips messages of unknown types, and throws for any other
  // type.
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

  // After this call, the executor may close its end without consequences.
  void Leave();

  // Waits until the executor closes its end, for at most `timeout`.
  void WaitForExecutorToClose(std::chrono::milliseconds timeout);

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<FromExecutor> TakeNext(std::unique_lock<std::mutex> lock);  // a lock of mutex_
  void Run();
  void ReadSome();
  void TakeLines();
  void Wake() const;

  // These require a lock of mutex_; Queue() takes it.
  std::unique_lock<std::mutex> Queue(const std::string& lines);
  void Write();      // writes what the socket accepts now; the thread writes the rest
  void WriteSome();  // writes what the socket accepts now
  void WriteGathered();

  UniqueFd socket_;
  UniqueFd wake_;
  std::function<void()> on_executor_gone_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string outgoing_;  // guarded by mutex_, as is all below
  Clock::time_point written_;
  std::optional<Clock::time_point>
      write_at_;  // when to write collected lines; empty if there are none
  std::deque<FromExecutor> incoming_;
  std::exception_ptr failure_;
  bool closed_ = false;
  bool leaving_ = false;
  bool stop_ = false;

  channel::LineReader lines_;  // used by the thread only
  std::thread thread_;         // declared last, because it uses all of the above
};

}  // namespace attune::inline sdk::trainable
