#include "executor/agent/connection.h"

#include <utility>

namespace attune::agent {

Connection::Connection(v1::Executors::Stub& stub, Events events) : events_(std::move(events)) {
  stub.async()->Connect(&context_, this);
  AddHold();  // until Close(), because writes start outside of gRPC's callbacks
  StartRead(&incoming_);
  StartCall();
}

void Connection::Write(v1::FromExecutor message) {
  outgoing_ = std::move(message);
  StartWrite(&outgoing_);
}

void Connection::Close() {
  context_.TryCancel();
  RemoveHold();
}

void Connection::OnReadDone(bool ok) {
  if (!ok) return events_.broken();
  events_.received(std::exchange(incoming_, {}));
  StartRead(&incoming_);
}

void Connection::OnWriteDone(bool ok) {
  if (ok) events_.written();  // if it failed, the read fails too and reports it
}

void Connection::OnDone(const grpc::Status& status) {
  // The callback may destroy this object.
  const auto closed = std::move(events_.closed);
  closed(status);
}

}  // namespace attune::agent
