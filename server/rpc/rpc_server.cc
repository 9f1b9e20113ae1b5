#include "server/rpc/rpc_server.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "base/result.h"

namespace attune::server {
namespace {

constexpr int kKeepaliveMs = 10'000;
constexpr int kMessageBytes = 16 << 20;
constexpr std::chrono::seconds kShutdownPatience{2};
constexpr int kChecksPerLease = 4;
constexpr std::chrono::milliseconds kCheckEvery{250};  // at the latest

std::shared_ptr<grpc::ServerCredentials> Credentials(const std::optional<tls::Identity>& identity) {
  if (!identity) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs.push_back({identity->key, identity->certificate});
  return grpc::SslServerCredentials(options);
}

}  // namespace

Result<std::unique_ptr<RpcServer>> RpcServer::Start(ExecutorService& service,
                                                    const Options& options) {
  grpc::ServerBuilder builder;
  int port = 0;
  const bool ipv6 = options.host.find(':') != std::string::npos;
  const std::string address =
      (ipv6 ? "[" + options.host + "]" : options.host) + ":" + std::to_string(options.port);
  if (options.listen) {
    builder.AddListeningPort(address, Credentials(options.identity), &port);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  }
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kKeepaliveMs / 2);
  builder.SetMaxReceiveMessageSize(kMessageBytes);
  builder.RegisterService(&service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || (options.listen && port == 0))
    return Error{
        ErrorCode::kUnavailable,
        "cannot listen for executors on " + address +
            ": the port is taken (choose another with --rpc-port, or 0 for any), or the address "
            "is none of this machine's"};
  return std::unique_ptr<RpcServer>(
      new RpcServer(service, std::move(server), port, options.lease_ttl));
}

RpcServer::RpcServer(ExecutorService& service, std::unique_ptr<grpc::Server> server, int port,
                     std::chrono::milliseconds lease_ttl)
    : service_(service), server_(std::move(server)), port_(port) {
  watch_ = std::thread(
      [this, lease_ttl] { WatchLeases(std::min(lease_ttl / kChecksPerLease, kCheckEvery)); });
}

RpcServer::~RpcServer() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    stop_.notify_all();
  }
  watch_.join();
  server_->Shutdown(std::chrono::system_clock::now() + kShutdownPatience);
  server_->Wait();
}

std::shared_ptr<grpc::Channel> RpcServer::LocalChannel() {
  return server_->InProcessChannel(grpc::ChannelArguments());
}

void RpcServer::WatchLeases(std::chrono::milliseconds period) {
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, period, [this] { return stopping_; })) {
    lock.unlock();
    service_.CheckLeases();
    lock.lock();
  }
}

}  // namespace attune::server
