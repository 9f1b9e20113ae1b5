#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>

#include "attune/v1/executor.grpc.pb.h"

namespace attune::agent {

// One Connect stream. Events are called on gRPC's threads. Functions must be called on one thread;
// none of them blocks on the network.
class Connection final : private grpc::ClientBidiReactor<v1::FromExecutor, v1::ToExecutor> {
 public:
  // Each is called without any lock held. `closed` is called once, last, and only after Close().
  struct Events {
    std::function<void(v1::ToExecutor)> received;
    std::function<void()> written;
    std::function<void()> broken;  // the server or the network ended the stream
    std::function<void(grpc::Status)> closed;
  };

  Connection(v1::Executors::Stub& stub, Events events);

  // REQUIRES: no write is under way (`written` has been called for the last one); not closed.
  void Write(v1::FromExecutor message);

  // Ends the stream; `closed` follows. This object may be destroyed only after that. Call it once.
  void Close();

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  Events events_;
  grpc::ClientContext context_;
  v1::ToExecutor incoming_;
  v1::FromExecutor outgoing_;
};

}  // namespace attune::agent
