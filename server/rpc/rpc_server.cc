#include "server/rpc/rpc_server.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "server/network/tcp_listener.h"

namespace attune::server {
namespace {

constexpr int kKeepaliveMs = 10'000;
constexpr int kHandshakeMs = 10'000;
constexpr int kMessageBytes = 16 << 20;
constexpr int kStreamsPerConnection = 16;
constexpr size_t kBytesOfAllConnections = 512 << 20;
constexpr std::chrono::seconds kShutdownPatience{2};
constexpr int kChecksPerLease = 4;
constexpr std::chrono::milliseconds kCheckEvery{250};  // upper limit of the interval

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
  TcpListener listener;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> to_grpc;
  if (options.listen) {
    auto listening = ListenTcp(options.host, options.port, "--rpc-port");
    if (!listening.ok()) return listening.error();
    listener = *std::move(listening);
    // The connections carry tokens and secrets.
    if (!listener.is_loopback && !options.identity)
      return Error{ErrorCode::kInvalid, "other hosts can reach the executors' port at " +
                                            options.host + ", so executors must use TLS there"};
    to_grpc = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        Credentials(options.identity));
  }
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kKeepaliveMs / 2);
  builder.SetMaxReceiveMessageSize(kMessageBytes);
  builder.SetResourceQuota(grpc::ResourceQuota("executors").Resize(kBytesOfAllConnections));
  builder.RegisterService(&service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr)
    return Error{ErrorCode::kInternal, "gRPC cannot start the server for executors"};
  std::unique_ptr<Acceptor> acceptor;
  if (options.listen)
    acceptor = std::make_unique<Acceptor>(
        std::move(listener.socket),
        Acceptor::Limits{.authenticated = options.connections.executors,
                         .unauthenticated = options.connections.executors_unauthenticated},
        std::move(to_grpc));
  return std::unique_ptr<RpcServer>(new RpcServer(service, std::move(server), std::move(acceptor),
                                                  listener.port, options.lease_ttl));
}

RpcServer::RpcServer(ExecutorService& service, std::unique_ptr<grpc::Server> server,
                     std::unique_ptr<Acceptor> acceptor, int port,
                     std::chrono::milliseconds lease_ttl)
    : service_(service), server_(std::move(server)), acceptor_(std::move(acceptor)), port_(port) {
  if (acceptor_)
    service_.SetAuthenticated(
        [this](const std::string& peer) { return acceptor_->Authenticate(peer); });
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
  service_.SetAuthenticated(nullptr);
  acceptor_.reset();
  server_->Shutdown(std::chrono::system_clock::now() + kShutdownPatience);
  server_->Wait();
}

std::shared_ptr<grpc::Channel> RpcServer::LocalChannel() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);  // pieces of files and assignments may exceed 4 MiB
  return server_->InProcessChannel(arguments);
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
