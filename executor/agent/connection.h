#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>

#include "attune/v1/executor.grpc.pb.h"

namespace attune::agent {

// One Connect stream. Its events come on gRPC's threads; its functions are called by one thread,
// which does not wait for the network in any of them.
class Connection final : private grpc::ClientBidiReactor<v1::FromExecutor, v1::ToExecutor> {
 public:
  // Each is called with the lock of nothing held. `closed` is the last call, made once, and only
  // after Close().
  struct Events {
    std::function<void(v1::ToExecutor)> received;
    std::function<void()> written;
    std::function<void()> broken;  // the server ended the stream, or the network did
    std::function<void(grpc::Status)> closed;
  };

  Connection(v1::Executors::Stub& stub, Events events);

  // REQUIRES: no write is under way (`written` has been called for the last one); not closed.
  void Write(v1::FromExecutor message);

  // Ends the stream; `closed` follows, and only then may this object be destroyed. Once only.
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
