#include "cli/commands/pilots/pilot_server.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "cli/client/api.h"
#include "cli/commands/command.h"
#include "cli/joining.h"
#include "server/folder/server_socket.h"

namespace attune::cli {
namespace {

std::string ThisHost() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

// HOST:PORT at which pilots reach the server that listens on `rpc`. kInvalid if other hosts cannot
// reach it.
Result<std::string> AddressForPilots(const std::string& rpc, const pilots::EngineFacts& engine) {
  const size_t colon = rpc.rfind(':');
  const std::string host = colon == std::string::npos ? "" : rpc.substr(0, colon);
  if (host.empty() || IsLoopback(host) || host == "[::1]")
    return Error{ErrorCode::kInvalid,
                 "the running server accepts only executors of this host (" +
                     (rpc.empty() ? "none" : rpc) +
                     "), and pilots run on other hosts\nstop it and start again with `attune " +
                     engine.command + " up` or with `attune serve --rpc-host 0.0.0.0`"};
  if (host == "0.0.0.0" || host == "[::]") return ThisHost() + rpc.substr(colon);
  return rpc;
}

Result<std::string> AddressOfRunningServer(const std::filesystem::path& data_dir,
                                           const pilots::EngineFacts& engine) {
  const Result<server::ServerAddress> running = server::AskServer(data_dir);
  if (!running.ok()) return running.error();
  return AddressForPilots(running->rpc, engine);
}

}  // namespace

Result<ReachableServer> FindOrStartServer(const PilotFlags& flags,
                                          const pilots::EngineFacts& engine, Console& console) {
  ReachableServer reachable;
  Result<Endpoint> endpoint = ServerOf(flags.server);
  const bool answers = endpoint.ok() && Api(*endpoint).Version().ok();
  if (!answers && !flags.server.server.empty()) {
    return endpoint.ok() ? Api(*endpoint).Version().error() : endpoint.error();
  }
  if (answers) {
    reachable.endpoint = *std::move(endpoint);
    Result<std::string> rpc = flags.executors.empty()
                                  ? AddressOfRunningServer(flags.server.data_dir, engine)
                                  : flags.executors;
    if (!rpc.ok()) return rpc.error();
    reachable.for_pilots = *std::move(rpc);
    return reachable;
  }
  auto started = console.host.start_server({.data_dir = flags.server.data_dir,
                                            .http_port = flags.port,
                                            .rpc_host = flags.rpc_host,
                                            .rpc_port = flags.rpc_port});
  if (!started.ok()) return started.error();
  reachable.local = *std::move(started);
  reachable.endpoint = reachable.local->endpoint();
  reachable.for_pilots = flags.executors.empty() ? reachable.local->rpc_target() : flags.executors;
  return reachable;
}

Result<std::string> ReadJoin(const PilotFlags& flags) {
  Result<std::string> join = ReadToken(flags.server.data_dir / "join");
  if (join.ok()) return join;
  return Error{join.error().code,
               join.error().message + "\npass --data-dir with the server's data folder"};
}

}  // namespace attune::cli
