#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "channel/messages.h"
#include "system/unique_fd.h"
#include "trainable/driver/link.h"
#include "trainable/driver/task.h"
#include "trainable/start/local_gang.h"

namespace attune::inline sdk::trainable {

// Workers of this process, a gang: they start together, and when one fails all go.
//
// Send() and Receive() may be called from several threads for different workers.
class Gang {
 public:
  struct Options {
    std::vector<channel::Start> workers;  // what each is told
    Task task;
    // Of a worker that owes an answer and says nothing; 0: never.
    std::chrono::milliseconds stall_timeout{0};
  };

  // Starts them and waits for nothing. Throws Error without attune::Init().
  explicit Gang(Options options);

  // Lets the workers leave, and ends those that have not within kPatience.
  ~Gang();
  Gang(const Gang&) = delete;
  Gang& operator=(const Gang&) = delete;

  int size() const { return static_cast<int>(links_.size()); }

  // Throws WorkerError when the gang has failed, or fails meanwhile.
  void Send(int worker, const Message& message);
  Message Receive(int worker);  // its answer to what it was sent last

  // The same for all at once; answers by worker.
  std::vector<Message> Call(const Message& message);

  // Ends all at once.
  void Kill();

  static constexpr std::chrono::seconds kPatience{5};

 private:
  // What is known of a worker, from the thread that supervises.
  struct Pulse {
    std::atomic<pid_t> pid = 0;
    std::atomic<std::int64_t> heard = 0;    // milliseconds of the steady clock
    std::atomic<std::int64_t> silence = 0;  // milliseconds
    std::atomic<bool> owes = false;         // an answer
  };

  void Supervise(std::vector<channel::Start> workers, std::vector<UniqueFd> drivers);
  bool AwaitEnd(std::chrono::milliseconds timeout);
  [[noreturn]] void ThrowEnd();
  std::int64_t SilenceAllowed() const;  // milliseconds
  std::optional<std::chrono::milliseconds> UntilStall() const;
  void EndStalled();
  void EndFor(int worker, const std::string& cause);

  const std::chrono::milliseconds stall_timeout_;
  LocalLauncher launcher_;
  UniqueFd stop_;
  UniqueFd ended_;  // readable once end_ stands
  LocalGang::End end_;
  std::atomic<bool> closing_ = false;  // the workers may leave
  // Whom the driver itself has found at fault, and why.
  std::mutex fault_mutex_;
  int at_fault_ = -1;  // guarded by fault_mutex_, as is the next one
  std::string fault_;
  std::vector<Link> links_;
  std::unique_ptr<Pulse[]> pulses_;
  std::thread supervisor_;
};

}  // namespace attune::inline sdk::trainable
