#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "executor/agent/agent_exit.h"
#include "executor/gang/channel_types.h"
#include "executor/gang/gang.h"
#include "executor/gang/launcher.h"
#include "executor/gang/spec.h"
#include "executor/health/host_health.h"
#include "executor/health/host_resources.h"
#include "executor/logs/log_limit.h"
#include "system/unique_fd.h"

namespace grpc {
class Channel;
}

namespace attune::agent {

inline constexpr uint64_t kCopiesBytes = uint64_t{10} << 30;

struct AgentOptions {
  std::string target;                      // host:port of the server
  std::string fingerprint;                 // of the server's certificate; empty: no TLS
  std::shared_ptr<grpc::Channel> channel;  // if set, replaces the two options above
  // If set, replaces all options above. Connects to a server on this machine that has no
  // certificate, and verifies its identity. Called for each connection, on a thread that may block.
  std::function<Result<UniqueFd>()> connect;
  std::string token;
  std::string name;      // unique among executors
  std::string version;   // empty: the version of this build
  std::string instance;  // empty: a random one
  // How ranks on other hosts reach this host. Without an address, gangs on this host cannot span
  // hosts.
  gang::HostAddress host;
  std::string address;  // shown to users if `host` has no address
  HostResources resources;
  std::map<std::string, std::string> labels;  // gangs may require them
  std::filesystem::path data_dir;
  // Limit for the cache of other executors' checkpoints: bytes of copies that no gang uses.
  uint64_t copies_bytes_max = kCopiesBytes;
  HealthLimits health;  // below these limits no gang starts here
  // Maximum disk space of one rank's log; 0: no limit.
  uint64_t log_bytes_max = gang::kLogLimit;
  std::chrono::milliseconds give_up{0};  // time without a server until the agent ends; 0: never
  // Time until something else ends this process, such as a batch system; nullopt: no limit.
  std::optional<std::chrono::milliseconds> time_left;
  bool temporary_data = false;  // data_dir is deleted when the executor ends
  gang::GangTiming gang_timing;
  gang::Launcher::Options launcher;
};

// The executor's side of `attune/v1/executor.proto`. It keeps a stream to the server and runs the
// gangs that the server wants. It reports what happens, and resends each fact until the server
// acknowledges it.
//
// While the server is away, gangs keep running. The agent reconnects, at first immediately and then
// with growing pauses. If it hears nothing from the server for the duration of a lease, it tears
// its gangs down.
//
// All functions are thread-safe.
class Agent {
 public:
  // Locks the executor's name and starts; returns before the server is reached. REQUIRES: main()
  // has called gang::MaybeRunGuard(); otherwise this returns an error.
  static Result<std::unique_ptr<Agent>> Start(AgentOptions options);

  // Calls Stop() and Wait().
  ~Agent();

  // Tears all gangs down, tells the server if it is connected, and ends.
  void Stop();

  // Like Stop(), but running gangs have `grace` to save a checkpoint at their next report and to
  // exit.
  void Leave(std::chrono::milliseconds grace);

  // Blocks until the agent has ended and no gang is left. May be called again.
  AgentExit Wait();

  // Starts the launcher of a program before its first gang, so that the gang starts faster.
  void PrestartLauncher(gang::Program program);

 private:
  class Impl;

  explicit Agent(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace attune::agent
