#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "server/network/unauthenticated_pool.h"
#include "system/unique_fd.h"

namespace grpc::experimental {
class ExternalConnectionAcceptor;
}  // namespace grpc::experimental

namespace attune::server {

// Accepts executors' connections and hands them to gRPC. gRPC limits neither the number of
// connections nor the bytes that a connection sends before its token is checked.
//
// Until Authenticate is called for a connection, it belongs to a small pool and may send only few
// bytes. The acceptor keeps a second descriptor of each connection, so it can shut the connection
// down while gRPC owns the first.
class Acceptor {
 public:
  struct Limits {
    size_t authenticated = 512;
    size_t unauthenticated = 128;
    // Enough for a TLS handshake, headers, and a Hello of 64 KiB.
    size_t unauthenticated_bytes = 80 << 10;
  };

  // Starts accepting. `listener` listens and does not block. REQUIRES: gRPC's server has started.
  Acceptor(UniqueFd listener, Limits limits,
           std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> to_grpc);
  // Stops accepting. gRPC keeps the open connections.
  ~Acceptor();

  // Marks the connection of this peer as authenticated, because a call with a valid token came from
  // it. `grpc_peer` has the form of grpc::ServerContextBase::peer(). Returns false if there are too
  // many connections; the caller must then refuse the call. Returns true for a peer that did not
  // connect through this object. Any thread.
  bool Authenticate(const std::string& grpc_peer);

 private:
  using Id = uint64_t;
  struct Connection {
    UniqueFd socket;
    std::string peer;
    bool authenticated = false;
  };

  void Run();
  void AcceptAll();
  void Accept(UniqueFd socket, const std::string& peer);
  void OnEvent(Id id, uint32_t events);
  void ShutDown(Id id);
  void Forget(Id id);
  void Listen(bool on);

  const Limits limits_;
  const UniqueFd listener_;
  const UniqueFd epoll_;
  const UniqueFd wake_;
  const std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> to_grpc_;
  bool listening_ = false;  // used by the thread only

  std::mutex mutex_;
  std::map<Id, Connection> connections_;
  std::unordered_map<std::string, Id> by_peer_;
  UnauthenticatedPool unauthenticated_;
  size_t authenticated_ = 0;
  Id last_id_;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace attune::server
