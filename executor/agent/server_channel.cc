#include "executor/agent/server_channel.h"

#include <grpcpp/create_channel_posix.h>

#include <chrono>
#include <utility>

namespace attune::agent {

ServerChannel::ServerChannel(std::shared_ptr<grpc::Channel> channel)
    : stub_(v1::Executors::NewStub(std::move(channel))) {}

ServerChannel::ServerChannel(ConnectToServer connect, const grpc::ChannelArguments& arguments)
    : connect_(std::move(connect)), arguments_(arguments), thread_([this] {
        while (!stop_)
          for (const auto& work : mailbox_.TakeUntil(std::chrono::steady_clock::time_point::max()))
            work();
      }) {}

ServerChannel::~ServerChannel() {
  if (!thread_.joinable()) return;
  mailbox_.Post([this] { stop_ = true; });
  thread_.join();
}

void ServerChannel::Open(std::function<void(const Status& opened)> done) {
  if (!connect_) return done({});
  mailbox_.Post([this, done = std::move(done)] { done(Connect()); });
}

Status ServerChannel::Connect() {
  Result<UniqueFd> socket = connect_();
  if (!socket.ok()) return socket.error();
  auto channel =
      grpc::CreateCustomInsecureChannelFromFd("the server", socket->release(), arguments_);
  const std::lock_guard lock(mutex_);
  stub_ = v1::Executors::NewStub(std::move(channel));
  return {};
}

std::shared_ptr<v1::Executors::Stub> ServerChannel::stub() const {
  const std::lock_guard lock(mutex_);
  return stub_;
}

}  // namespace attune::agent
