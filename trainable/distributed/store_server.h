#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "system/unique_fd.h"
#include "trainable/base/sockets.h"
#include "trainable/distributed/store_messages.h"

namespace attune::inline sdk::trainable {

// The gang's store: a key-value store through which its ranks find each other before they are
// connected. It runs in rank 0 on a separate thread. All ranks, including rank 0, use it over TCP
// (GangStore).
//
// Any client that reaches its port may read and write, as with torch's TCPStore. The port is on
// loopback if all ranks are on one host. Otherwise it is on one address of this host, and the
// network must protect it, like Gloo's ports. An invalid message closes only its connection.
class StoreServer {
 public:
  // Listens on a free port of this IPv4 address of this host. Throws attune::Error.
  explicit StoreServer(const std::string& host);
  // Clients that still wait lose their connections.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  std::uint16_t port() const { return port_; }

 private:
  // A pending wait of a connection. A connection has at most one; a new request replaces it.
  struct Wait {
    StoreMessage request;
    std::size_t next = 0;  // index of a key of the request; the keys before it have existed
  };
  struct Connection {
    UniqueFd socket;
    StoreMessageReader in;
    std::string out;  // unsent bytes; while there are any, no request is read
    std::optional<Wait> wait;
    bool is_closed = false;
  };

  void Run();
  void Accept();
  void Serve(Connection& connection);
  void Receive(Connection& connection);
  void Close(Connection& connection);

  void Handle(Connection& connection, StoreMessage request);
  // Returns the answer to a request that need not wait.
  StoreMessage Answer(const StoreMessage& request);
  void Set(const std::string& key, std::string value);
  StoreMessage Values(const std::vector<std::string>& keys) const;
  void ContinueWait(Connection& connection);
  void EndWait(Connection& connection);
  void Reply(Connection& connection, const StoreMessage& request, StoreMessage answer);

  UniqueFd listener_;
  std::uint16_t port_ = 0;
  UniqueFd stop_;
  bool has_descriptors_ = true;  // whether another connection can be accepted
  std::unordered_map<std::string, std::string> values_;
  std::unordered_map<int, Connection> connections_;  // by descriptor
  std::unordered_map<std::string, std::vector<int>>
      connections_waiting_;  // connections by the key that they wait for
  std::thread thread_;
};

}  // namespace attune::inline sdk::trainable
