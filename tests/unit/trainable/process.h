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

// Running the gang program as real processes.
namespace attune::inline sdk::trainable::testing {

using Environment = std::map<std::string, std::string>;

// Long enough for a busy machine; no test waits that long unless it fails.
inline constexpr std::chrono::seconds kPatience{60};

// The two ends of a worker channel.
std::pair<UniqueFd, UniqueFd> ChannelPair();

// Waits for the next bytes and reads them, of anything; false at the end.
bool ReadFrom(int fd, channel::LineReader& lines);

void WriteLine(int fd, const nlohmann::json& message);

// A file in memory for what several processes print at once.
UniqueFd OpenLog();

// The gang program, with `inherited` kept open and stdout and stderr going to `output`; `in_child`
// is called before it is the program.
pid_t Spawn(const std::vector<std::string>& args, const Environment& environment, int inherited,
            int output, const std::function<void()>& in_child = {});

struct Ended {
  int exit_code = -1;  // 128 + the signal's number if it died of one
  std::string output;  // stdout and stderr together
  std::chrono::milliseconds took{};
};

// Runs the gang program by hand until it and all that holds its output has ended; `while_running`
// is called with its pid and with each line of output, `in_child` in it before it is the program.
Ended RunByHand(const std::vector<std::string>& args, const Environment& environment = {},
                const std::function<void(pid_t, const std::string&)>& while_running = {},
                const std::function<void()>& in_child = {});

// Waits for the end; as in Ended. Kills the process and fails the test after kPatience.
int Wait(pid_t pid);

// The test as the executor of one gang: starts ranks, and speaks the worker channel in the words of
// docs/reference/worker-channel.md, without help from the SDK's own message types.
class FakeGang {
 public:
  // `start` is merged into each rank's `start` message.
  FakeGang(int world_size, nlohmann::json start, const Environment& environment = {});
  ~FakeGang();

  // Passes rank 0's rendezvous on to the others.
  void RelayRendezvous();

  // Reads on until a message of `type` comes from the rank; those before it are in seen(). Null at
  // the end of the stream.
  nlohmann::json Await(int rank, const std::string& type);

  // Reads on until rank 0 reports that it waits for a verdict.
  nlohmann::json AwaitWaiting();

  void Send(int rank, const nlohmann::json& message);
  void Verdict(std::int64_t step, const std::string& action, std::int64_t milestone = 0);

  // Closes the executor's end of all channels.
  void Vanish();

  int Wait(int rank);
  std::vector<nlohmann::json>& seen(int rank) { return ranks_[rank].seen; }
  pid_t pid(int rank) const { return ranks_[rank].pid; }

  // What the ranks have written to stdout and stderr so far.
  std::string Output();

 private:
  struct Rank {
    pid_t pid = 0;
    UniqueFd channel;
    channel::LineReader lines;
    std::vector<nlohmann::json> seen;
  };
  std::vector<Rank> ranks_;
  UniqueFd log_;
};

// Of messages but heartbeats, which come when they come.
std::vector<std::string> Types(const std::vector<nlohmann::json>& messages);

}  // namespace attune::inline sdk::trainable::testing
