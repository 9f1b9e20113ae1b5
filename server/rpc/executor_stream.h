#pragma once

#include <deque>
#include <mutex>
#include <string>

#include "attune/v1/executor.grpc.pb.h"
#include "server/rpc/sessions.h"

namespace attune::server {

class ExecutorService;

// One connection of an executor: reads what comes when it is told to, writes what is sent, in order
// and without blocking. Owned by gRPC: it deletes itself once that is done with it.
class ExecutorStream final : public grpc::ServerBidiReactor<v1::FromExecutor, v1::ToExecutor>,
                             public ExecutorLink {
 public:
  // `peer` is the name that gRPC gives the other end.
  ExecutorStream(ExecutorService& service, std::string peer);

  // Dropped once the stream is closing. Desired state and acknowledgements that wait to be written
  // give way to newer ones, so that an executor that reads slowly gets the newest and holds up no
  // memory.
  void Send(v1::ToExecutor message) override;
  void Close() override;
  void ReadOn() override;

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { Close(); }
  void OnDone() override;

  void Supersede(v1::ToExecutor& newer);  // REQUIRES: mutex_ is held
  void WriteNext();                       // REQUIRES: mutex_ is held

  ExecutorService& service_;
  const std::string peer_;
  const SessionId id_;
  v1::FromExecutor incoming_;

  std::mutex mutex_;
  std::deque<v1::ToExecutor> outbox_;
  v1::ToExecutor outgoing_;  // being written while writing_
  bool writing_ = false;
  bool closing_ = false;
  bool finished_ = false;
};

}  // namespace attune::server
