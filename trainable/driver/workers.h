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

// The workers of a driver: one gang, with a thread that runs it and a socket to each worker.
//
// Send() and Receive() may be called from several threads for different workers.
class Workers {
 public:
  struct Options {
    std::vector<channel::Start> starts;  // the start message of each worker
    Task task;                           // the task of each worker; the constructor sets the index
    // How long a worker may be silent during a call before it counts as lost; 0: no limit.
    std::chrono::milliseconds stall_timeout{0};
  };

  // Starts the workers without waiting for them. Throws Error without attune::Init().
  explicit Workers(Options options);

  // Lets the workers exit, and kills those that have not exited within Launcher::kPatience.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int size() const { return static_cast<int>(sockets_.size()); }

  // Both throw WorkerError if the gang has failed, or fails during the call.
  void Send(int worker, const Message& message);
  Message Receive(int worker);  // the answer to the last message to this worker

  // Sends the same message to all workers. Returns the answers by worker.
  std::vector<Message> Call(const Message& message);

  // Kills all workers.
  void Kill();

 private:
  // Liveness data of a worker, written by the thread that runs the gang.
  struct Liveness {
    std::atomic<pid_t> pid = 0;
    std::atomic<std::int64_t> last_message = 0;  // time in milliseconds of the steady clock
    std::atomic<std::int64_t> silence = 0;       // announced silence in milliseconds
    std::atomic<bool> owes_answer = false;
  };

  void RunGang(std::vector<channel::Start> starts, std::vector<UniqueFd> drivers);
  bool AwaitEnd();
  [[noreturn]] void ThrowEnd();
  std::int64_t SilenceAllowed() const;  // milliseconds
  std::optional<std::chrono::milliseconds> UntilStall() const;
  void EndStalled();
  void Blame(int worker, const std::string& cause);  // also kills all workers

  const std::chrono::milliseconds stall_timeout_;
  Launcher launcher_;
  UniqueFd stop_;
  UniqueFd ended_;  // readable after end_ is final
  Gang::End end_;
  std::atomic<bool> closing_ = false;  // the workers may exit
  // The first worker at fault according to the driver, and the cause.
  std::mutex fault_mutex_;
  int at_fault_ = -1;  // guarded by fault_mutex_, like fault_
  std::string fault_;
  std::vector<MessageSocket> sockets_;
  std::unique_ptr<Liveness[]> liveness_;
  std::thread gang_thread_;
};

// Forks a launcher for one more gang. Throws Error unless attune::Init() was called.
Launcher ForkLauncher();

}  // namespace attune::inline sdk::trainable
