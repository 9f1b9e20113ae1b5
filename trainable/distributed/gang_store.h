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

// Where a store listens: the address is taken as it is if it is one, and looked up else, once.
// Throws attune::Error when there is none.
sockaddr_in StoreAddress(const std::string& host, std::uint16_t port);

// A connection to a StoreServer, as LibTorch's process groups use it. It takes the place of
// TCPStore, which asks the name server for the name of every peer.
//
// Calls from several threads take turns, and one that waits has its turn until it ends: clone()
// makes a connection that is free. A call that takes longer than the timeout, or than that of a
// wait, throws c10::DistStoreError; a connection that is lost, then and ever after,
// c10::DistNetworkError; what the store refuses (limits: store_messages.h), attune::Error. A
// timeout of zero is none.
class GangStore final : public c10d::Store {
 public:
  // Connects, within the timeout.
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
  [[noreturn]] void Lose(const std::string& why);

  const sockaddr_in address_;
  std::mutex calling_;
  UniqueFd socket_;  // none once the connection is lost
  StoreMessageReader in_;
  std::uint32_t calls_ = 0;
};

}  // namespace attune::inline sdk::trainable
