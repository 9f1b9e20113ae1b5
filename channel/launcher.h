#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "channel/messages.h"

// The packets between an executor and a launcher of ranks (docs/reference/worker-channel.md,
// "Launchers").
namespace attune::channel {

inline constexpr int kLauncherProtocol = 1;

// A variable in the environment of a `fork`: the folder of a cgroup. The child joins the cgroup
// with JoinCgroup() and removes the variable from its environment.
inline constexpr const char* kCgroupVariable = "ATTUNE_CGROUP";

// Moves the calling thread to the threaded cgroup of this folder. The process must have no other
// threads. If the system refuses, the thread stays in its cgroup.
void JoinCgroup(const std::string& folder);

// ---- executor -> launcher

// Sent with two descriptors: the rank's channel and its log.
struct Fork {
  uint64_t request = 0;
  std::vector<std::string> argv;
  // Added to the launcher's environment. A variable without a value is removed.
  std::vector<std::pair<std::string, std::optional<std::string>>> environment;
  std::string working_directory;  // empty: the launcher's
  pid_t process_group = 0;        // 0: a new one
};

// ---- launcher -> executor

struct Ready {
  int protocol = kLauncherProtocol;
  pid_t pid = 0;
};

// Sent with the child's pidfd, unless there is an error.
struct Forked {
  uint64_t request = 0;
  pid_t pid = 0;
  std::string error;
};

struct Exited {
  pid_t pid = 0;
  int exit_code = 0;
  int signal = 0;  // 0: it exited with exit_code
};

// Nullopt for a packet of an unknown type.
Result<std::optional<Fork>> ParseFork(std::string_view packet);
// The request number of a packet that may be malformed, for the answer. 0 if there is none.
uint64_t RequestNumber(std::string_view packet);

using FromLauncher = std::variant<Ready, Forked, Exited, Unknown>;
Result<FromLauncher> ParseFromLauncher(std::string_view packet);

std::string ToPacket(const Fork& fork);
std::string ToPacket(const Ready& ready);
std::string ToPacket(const Forked& forked);
std::string ToPacket(const Exited& exited);

}  // namespace attune::channel
