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

// The gang's store: what its ranks tell each other before they are connected, as values by name. It
// lives in rank 0, on a thread of its own, and is used over TCP (GangStore), by rank 0 too.
//
// Whoever reaches its port may read and write, as with torch's TCPStore: the port is on loopback
// where all ranks are on one host, else on one address of this host, and to be guarded by the
// network, as Gloo's ports are. What is no message ends the connection that it came on, and nothing
// else.
class StoreServer {
 public:
  // Listens on a free port of this IPv4 address of the host's. Throws attune::Error.
  explicit StoreServer(const std::string& host);
  // Those who still wait lose their connections.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  std::uint16_t port() const { return port_; }

 private:
  // What a connection waits for. It has one at most: a further request takes its place.
  struct Wait {
    StoreMessage request;
    std::size_t next = 0;  // among the request's keys: those before it have been there
  };
  struct Connection {
    UniqueFd socket;
    StoreMessageReader in;
    std::string out;  // while there is some, nothing more is read
    std::optional<Wait> wait;
    bool is_closed = false;
  };

  void Run();
  void Accept();
  void Serve(Connection& connection);
  void Receive(Connection& connection);
  void Close(Connection& connection);

  void Handle(Connection& connection, StoreMessage request);
  // The answer, but to those that wait.
  StoreMessage Answer(const StoreMessage& request);
  void Set(const std::string& key, std::string value);
  StoreMessage Values(const std::vector<std::string>& keys) const;
  void GoOnWaiting(Connection& connection);
  void EndWait(Connection& connection);
  void Reply(Connection& connection, const StoreMessage& request, StoreMessage answer);

  UniqueFd listener_;
  std::uint16_t port_ = 0;
  UniqueFd stop_;
  bool has_descriptors_ = true;  // for further connections
  std::unordered_map<std::string, std::string> values_;
  std::unordered_map<int, Connection> connections_;                        // by descriptor
  std::unordered_map<std::string, std::vector<int>> connections_waiting_;  // by the next key
  std::thread thread_;
};

}  // namespace attune::inline sdk::trainable
