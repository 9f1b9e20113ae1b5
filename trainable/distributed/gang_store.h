#pragma once

#include <netinet/in.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "system/unique_fd.h"
#include "trainable/base/sockets.h"
#include "trainable/distributed/store_messages.h"

namespace attune::inline sdk::trainable {

// Returns the address of a store. Resolves `host` once, unless it is an IP address. Throws
// attune::Error if it cannot be resolved.
sockaddr_in StoreAddress(const std::string& host, std::uint16_t port);

// A connection to a StoreServer, for LibTorch's process groups. It replaces TCPStore, which asks
// the name server for the name of every peer.
//
// Calls from several threads run one after the other, so a waiting call blocks the others; clone()
// opens another connection. A call that exceeds its timeout throws c10::DistStoreError. A lost
// connection throws c10::DistNetworkError, from then on in every call. A refused request throws
// attune::Error (limits: store_messages.h). A timeout of zero means no timeout.
class GangStore final : public c10d::Store {
 public:
  // Connects within the timeout.
  GangStore(const sockaddr_in& address, std::chrono::milliseconds timeout);

  c10::intrusive_ptr<c10d::Store> clone() override;

  using Store::set;
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override;
  using Store::compareSet;
  std::vector<std::uint8_t> compareSet(const std::string& key,
                                       const std::vector<std::uint8_t>& expected,
                                       const std::vector<std::uint8_t>& desired) override;
  std::vector<std::uint8_t> get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t value) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  std::int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;
  void append(const std::string& key, const std::vector<std::uint8_t>& value) override;
  std::vector<std::vector<std::uint8_t>> multiGet(const std::vector<std::string>& keys) override;
  void multiSet(const std::vector<std::string>& keys,
                const std::vector<std::vector<std::uint8_t>>& values) override;
  bool hasExtendedApi() const override { return true; }

 private:
  StoreMessage Call(StoreMessage request, std::chrono::milliseconds timeout);
  void Send(std::string bytes, Clock::time_point deadline);
  void Receive();
  [[noreturn]] void FailConnection(const std::string& why);

  const sockaddr_in address_;
  std::mutex calling_;
  UniqueFd socket_;  // invalid after the connection is lost
  StoreMessageReader reader_;
  std::uint32_t calls_ = 0;
};

}  // namespace attune::inline sdk::trainable
