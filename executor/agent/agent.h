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
#include "executor/gang/gang.h"
#include "executor/gang/launcher.h"
#include "executor/gang/spec.h"
#include "executor/gang/words.h"
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
  std::string target;                      // the server, host:port
  std::string fingerprint;                 // of its certificate; empty: no TLS
  std::shared_ptr<grpc::Channel> channel;  // used instead of the two above, if set
  // Connects to a server of this machine that has no certificate, and makes sure that it is the
  // server. Called for each connection, by a thread that may wait. Used instead of all above, if
  // set.
  std::function<Result<UniqueFd>()> connect;
  std::string token;
  std::string name;      // unique among executors
  std::string version;   // empty: this build's
  std::string instance;  // empty: a random one
  // How ranks of other hosts reach this one; without an address, gangs here have no ranks
  // elsewhere.
  gang::HostAddress host;
  std::string address;  // for people, where `host` has none
  HostResources resources;
  std::map<std::string, std::string> labels;  // that gangs may ask for
  std::filesystem::path data_dir;
  // Of copies of other executors' checkpoints that no gang needs, so many bytes stay.
  uint64_t copies_bytes_max = kCopiesBytes;
  HealthLimits health;  // below which nothing more is to start here
  // How much of the disk the log of a rank may take; 0: as much as it likes.
  uint64_t log_bytes_max = gang::kLogLimit;
  std::chrono::milliseconds give_up{0};  // it ends after so long without a server; 0: never
  // Until something else ends it, such as a batch system; absent: nothing does.
  std::optional<std::chrono::milliseconds> time_left;
  gang::GangTiming gang_timing;
  gang::Launcher::Options launcher;
};

// The executor's side of `attune/v1/executor.proto`: keeps a stream to the server, runs the gangs
// that the server wants, and tells it what happens, each fact until it is acknowledged.
//
// While the server is away gangs go on, and the agent tries to reconnect, at first at once and then
// with growing pauses. After a lease without a word from the server, it tears its gangs down.
//
// Functions may be called by any thread.
class Agent {
 public:
  // Takes the name's lock and starts; returns before the server has been reached.
  // REQUIRES: main called gang::MaybeRunGuard(); without, it is an error.
  static Result<std::unique_ptr<Agent>> Start(AgentOptions options);

  // As Stop() and Wait().
  ~Agent();

  // Tears all gangs down, tells the server, if it is there to listen, and ends.
  void Stop();

  // As Stop(), but what runs has so long to save a checkpoint at its next report, and to leave.
  void Leave(std::chrono::milliseconds grace);

  // Returns when the agent has ended: no gang is left. May be called again.
  AgentExit Wait();

  // Starts the launcher of a program that will be run, to save its first gang the time.
  void Warm(gang::Program program);

 private:
  class Impl;

  explicit Agent(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace attune::agent
