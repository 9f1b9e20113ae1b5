#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/result.h"
#include "server/network/connection_limits.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/executor_service.h"
#include "tls/certificate.h"

namespace grpc {
class Channel;
class Server;
}  // namespace grpc

namespace attune::server {

// The gRPC server of the executors' service. It also checks their leases.
class RpcServer {
 public:
  struct Options {
    bool listen = true;  // for executors of other processes
    std::string host;
    int port = 0;                           // 0: any free port
    std::optional<tls::Identity> identity;  // nullopt: no TLS
    std::chrono::milliseconds lease_ttl;
    ConnectionLimits connections;
  };

  // Errors: those of ListenTcp, and kInvalid if other machines can reach the address and there is
  // no identity. The service outlives the server.
  static Result<std::unique_ptr<RpcServer>> Start(ExecutorService& service, const Options& options);
  ~RpcServer();

  int port() const { return port_; }  // 0 if it does not listen
  std::shared_ptr<grpc::Channel> LocalChannel();

 private:
  RpcServer(ExecutorService& service, std::unique_ptr<grpc::Server> server,
            std::unique_ptr<Acceptor> acceptor, int port, std::chrono::milliseconds lease_ttl);
  void WatchLeases(std::chrono::milliseconds period);

  ExecutorService& service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Acceptor> acceptor_;  // null if it does not listen
  int port_ = 0;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread watch_;
};

}  // namespace attune::server
