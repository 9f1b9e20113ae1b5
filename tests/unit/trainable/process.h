#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "channel/line_reader.h"
#include "system/unique_fd.h"
#include "trainable/base/sockets.h"

// Helpers that run the gang program as real processes.
namespace attune::inline sdk::trainable::testing {

using Environment = std::map<std::string, std::string>;

// Long enough for a busy machine; only a failing test waits this long.
inline constexpr std::chrono::seconds kPatience{60};

// The two ends of a worker channel.
std::pair<UniqueFd, UniqueFd> ChannelPair();

// Waits for more bytes and reads them; returns false at the end of the stream.
bool ReadFrom(int fd, channel::LineReader& lines);

void WriteLine(int fd, const nlohmann::json& message);

// A file in memory for the output of several processes.
UniqueFd OpenLog();

// Starts the gang program. It inherits the descriptor `inherited`, and stdout and stderr go to
// `output`. `in_child` is called in the child before exec.
pid_t Spawn(const std::vector<std::string>& args, const Environment& environment, int inherited,
            int output, const std::function<void()>& in_child = {});

struct Ended {
  int exit_code = -1;  // 128 + N if signal N ended it
  std::string output;  // stdout and stderr together
  std::chrono::milliseconds took{};
};

// Runs the gang program by hand until it and every process with its output have ended.
// `while_running` is called with its pid and each line of output, and `in_child` in the child
// before exec.
Ended RunByHand(const std::vector<std::string>& args, const Environment& environment = {},
                const std::function<void(pid_t, const std::string&)>& while_running = {},
                const std::function<void()>& in_child = {});

// Waits for the end of the process and returns its exit code, as in Ended. Kills the process and
// fails the test after kPatience.
int Wait(pid_t pid);

// Makes the test the executor of one gang. It starts ranks, and implements the worker channel of
// docs/reference/worker-channel.md without the message types of the SDK.
class FakeGang {
 public:
  // `start` is merged into each rank's `start` message.
  FakeGang(int world_size, nlohmann::json start, const Environment& environment = {});
  ~FakeGang();

  // Forwards rank 0's rendezvous to the other ranks.
  void RelayRendezvous();

  // Reads until a message of `type` arrives from the rank; received() has those before it. Returns
  // null at the end of the stream.
  nlohmann::json Await(int rank, const std::string& type);

  // Reads until rank 0 reports that it waits for a verdict.
  nlohmann::json AwaitWaiting();

  void Send(int rank, const nlohmann::json& message);
  void Verdict(std::int64_t step, const std::string& action, std::int64_t milestone = 0);

  // Closes the executor's end of all channels.
  void Vanish();

  int Wait(int rank);
  std::vector<nlohmann::json>& received(int rank) { return ranks_[rank].received; }
  pid_t pid(int rank) const { return ranks_[rank].pid; }

  // The output of the ranks so far, stdout and stderr.
  std::string Output();

 private:
  struct Rank {
    pid_t pid = 0;
    UniqueFd channel;
    channel::LineReader lines;
    std::vector<nlohmann::json> received;
  };
  std::vector<Rank> ranks_;
  UniqueFd log_;
};

// The types of messages, without heartbeats, whose times vary.
std::vector<std::string> Types(const std::vector<nlohmann::json>& messages);

}  // namespace attune::inline sdk::trainable::testing
