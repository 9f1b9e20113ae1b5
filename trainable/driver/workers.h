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
#include "trainable/driver/message.h"
#include "trainable/gang/gang.h"

namespace attune::inline sdk::trainable {

// The workers that a driver talks to: one gang, with a thread that runs it and a socket to each
// worker.
//
// Send() and Receive() may be called from several threads for different workers.
class Workers {
 public:
  struct Options {
    std::vector<channel::Start> starts;  // what each worker is told
    Task task;                           // for each, which the constructor numbers
    // A worker that owes an answer and is silent for so long is lost; 0: never.
    std::chrono::milliseconds stall_timeout{0};
  };

  // Starts the workers and does not wait. Throws Error without attune::Init().
  explicit Workers(Options options);

  // Lets the workers leave, and ends those that have not left within Launcher::kPatience.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int size() const { return static_cast<int>(sockets_.size()); }

  // Both throw WorkerError when the gang has failed, or fails meanwhile.
  void Send(int worker, const Message& message);
  Message Receive(int worker);  // the answer to the last message to it

  // Sends the same to all. Returns the answers by worker.
  std::vector<Message> Call(const Message& message);

  // Ends all at once.
  void Kill();

 private:
  // What the thread that runs the gang knows of a worker.
  struct Pulse {
    std::atomic<pid_t> pid = 0;
    std::atomic<std::int64_t> heard = 0;    // milliseconds of the steady clock
    std::atomic<std::int64_t> silence = 0;  // milliseconds
    std::atomic<bool> owes = false;         // an answer
  };

  void RunGang(std::vector<channel::Start> starts, std::vector<UniqueFd> drivers);
  bool AwaitEnd();
  [[noreturn]] void ThrowEnd();
  std::int64_t SilenceAllowed() const;  // milliseconds
  std::optional<std::chrono::milliseconds> UntilStall() const;
  void EndStalled();
  void Blame(int worker, const std::string& cause);  // and ends all

  const std::chrono::milliseconds stall_timeout_;
  Launcher launcher_;
  UniqueFd stop_;
  UniqueFd ended_;  // readable once end_ is final
  Gang::End end_;
  std::atomic<bool> closing_ = false;  // the workers may leave
  // The first worker that the driver itself has found at fault, and why.
  std::mutex fault_mutex_;
  int at_fault_ = -1;  // guarded by fault_mutex_, as is the next one
  std::string fault_;
  std::vector<MessageSocket> sockets_;
  std::unique_ptr<Pulse[]> pulses_;
  std::thread gang_thread_;
};

// A launcher for one more gang. Throws Error unless attune::Init() was called.
Launcher ForkLauncher();

}  // namespace attune::inline sdk::trainable
