#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "attune/v1/executor.grpc.pb.h"
#include "base/result.h"
#include "system/mailbox.h"
#include "system/unique_fd.h"

namespace attune::agent {

// The gRPC channel to the server. A channel to an address reconnects by itself; that is safe
// because a certificate identifies the server. A channel over a connection from `ConnectToServer`
// never reconnects: another program may have taken the address and must not get the token.
class ServerChannel {
 public:
  // Connects to the server and verifies its identity. May block.
  using ConnectToServer = std::function<Result<UniqueFd>()>;

  // Uses one permanent channel.
  explicit ServerChannel(std::shared_ptr<grpc::Channel> channel);

  // Makes a channel for each connection.
  ServerChannel(ConnectToServer connect, const grpc::ChannelArguments& arguments);

  ~ServerChannel();

  // Makes a channel unless there is a permanent one; `done` gets the result. `done` may be called
  // before this returns or on another thread. Only one call may be in progress.
  void Open(std::function<void(const Status& opened)> done);

  // The stub of the newest channel; null before the first one. Thread-safe.
  std::shared_ptr<v1::Executors::Stub> stub() const;

 private:
  Status Connect();

  const ConnectToServer connect_;  // empty: the channel is permanent
  const grpc::ChannelArguments arguments_;
  mutable std::mutex mutex_;
  std::shared_ptr<v1::Executors::Stub> stub_;  // under mutex_
  bool stop_ = false;                          // used only on the thread
  Mailbox<std::function<void()>> mailbox_;
  std::thread thread_;  // only with `connect_`
};

}  // namespace attune::agent
