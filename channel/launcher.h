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

// The language between an executor and a launcher of ranks (docs/reference/worker-channel.md,
// "Launchers").
namespace attune::channel {

inline constexpr int kLauncherProtocol = 1;

// Among the environment of a `fork`: the folder of a cgroup, which the child joins with
// JoinCgroup() and takes out of its environment.
inline constexpr const char* kCgroupVariable = "ATTUNE_CGROUP";

// The calling thread, the only one of its process, goes into the threaded cgroup of this folder.
// Not where the system does not let it: then it stays where it is.
void JoinCgroup(const std::string& folder);

// ---- executor -> launcher

// Goes with two descriptors: the rank's channel, its log.
struct Fork {
  uint64_t request = 0;
  std::vector<std::string> argv;
  // Added to the launcher's; without a value, the variable is removed.
  std::vector<std::pair<std::string, std::optional<std::string>>> environment;
  std::string working_directory;  // empty: the launcher's
  pid_t process_group = 0;        // 0: a new one
};

// ---- launcher -> executor

struct Ready {
  int protocol = kLauncherProtocol;
  pid_t pid = 0;
};

// Goes with the child's pidfd, unless there is an error.
struct Forked {
  uint64_t request = 0;
  pid_t pid = 0;
  std::string error;
};

struct Exited {
  pid_t pid = 0;
  int exit_code = 0;
  int signal = 0;  // 0: it left by itself, with exit_code
};

// Empty for a packet of a type that this version does not know.
Result<std::optional<Fork>> ParseFork(std::string_view packet);
// The number of a request whatever else is wrong with it, to answer it; 0 if there is none.
uint64_t RequestOf(std::string_view packet);

using FromLauncher = std::variant<Ready, Forked, Exited, Unknown>;
Result<FromLauncher> ParseFromLauncher(std::string_view packet);

std::string ToPacket(const Fork& fork);
std::string ToPacket(const Ready& ready);
std::string ToPacket(const Forked& forked);
std::string ToPacket(const Exited& exited);

}  // namespace attune::channel
