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

// The gRPC channel to the server. A channel to an address connects again by itself, which is right
// where the server is known by its certificate. Over a connection from `ConnectToServer` it does
// not: another program may have the address by then, and must not get the token.
class ServerChannel {
 public:
  // Connects to the server, and has made sure that it is the server. May wait.
  using ConnectToServer = std::function<Result<UniqueFd>()>;

  // A channel for good.
  explicit ServerChannel(std::shared_ptr<grpc::Channel> channel);

  // A channel for each connection.
  ServerChannel(ConnectToServer connect, const grpc::ChannelArguments& arguments);

  ~ServerChannel();

  // Makes a channel if there is none for good, and tells whether there is one. `done` may be called
  // before this returns, or by another thread. One at a time.
  void Open(std::function<void(const Status& opened)> done);

  // The stub of the newest channel; null before there is one. Any thread.
  std::shared_ptr<v1::Executors::Stub> stub() const;

 private:
  Status Connect();

  const ConnectToServer connect_;  // empty: the channel is for good
  const grpc::ChannelArguments arguments_;
  mutable std::mutex mutex_;
  std::shared_ptr<v1::Executors::Stub> stub_;  // under mutex_
  bool stop_ = false;                          // of the thread
  Mailbox<std::function<void()>> mailbox_;
  std::thread thread_;  // only with `connect_`
};

}  // namespace attune::agent
