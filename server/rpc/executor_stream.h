#pragma once

#include <deque>
#include <mutex>
#include <string>

#include "attune/v1/executor.grpc.pb.h"
#include "server/rpc/sessions.h"

namespace attune::server {

class ExecutorService;

// One connection of an executor. Reads one message at a time when told to. Writes messages in order
// without blocking. gRPC owns it, and it deletes itself when gRPC is done with it.
class ExecutorStream final : public grpc::ServerBidiReactor<v1::FromExecutor, v1::ToExecutor>,
                             public ExecutorLink {
 public:
  // `peer` is gRPC's name of the other end.
  ExecutorStream(ExecutorService& service, std::string peer);

  // Queues a message; drops it if the stream is closing. A newer desired state or acknowledgement
  // replaces an older one that still waits. So a slow executor gets the newest one and uses little
  // memory.
  void Send(v1::ToExecutor message) override;
  void Close() override;
  void ReadNext() override;

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
  v1::ToExecutor outgoing_;  // being written while writing_ is true
  bool writing_ = false;
  bool closing_ = false;
  bool finished_ = false;
};

}  // namespace attune::server
