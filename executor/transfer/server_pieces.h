#pragma once

#include <grpcpp/grpcpp.h>

#include <mutex>
#include <set>
#include <string>

#include "attune/v1/executor.grpc.pb.h"
#include "executor/transfer/piece_source.h"
#include "executor/transfer/server_stub.h"

namespace attune::agent {

// Reads checkpoints of other executors through the server.
class ServerPieces final : public PieceSource {
 public:
  ServerPieces(ServerStub stub, std::string token)
      : stub_(std::move(stub)), token_(std::move(token)) {}

  Answer Read(gang::RemoteFiles& files, const std::string& file, uint64_t offset,
              std::string memory) override;
  void Close() override;
  void Cancel() override;

 private:
  const ServerStub stub_;
  const std::string token_;
  std::mutex mutex_;
  std::set<grpc::ClientContext*> calls_;  // this and the next member: under mutex_
  bool cancelled_ = false;
};

}  // namespace attune::agent
