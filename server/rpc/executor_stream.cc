#include "server/rpc/executor_stream.h"

#include <algorithm>
#include <utility>

#include "server/rpc/executor_service.h"

namespace attune::server {

ExecutorStream::ExecutorStream(ExecutorService& service, std::string peer)
    : service_(service), peer_(std::move(peer)), id_(service.OnOpened(*this)) {
  StartRead(&incoming_);
}

void ExecutorStream::Send(v1::ToExecutor message) {
  std::lock_guard lock(mutex_);
  if (closing_) return;
  Supersede(message);
  outbox_.push_back(std::move(message));
  WriteNext();
}

void ExecutorStream::Supersede(v1::ToExecutor& newer) {
  if (!newer.has_desired() && !newer.has_ack()) return;
  const auto older = std::ranges::find(outbox_, newer.message_case(),
                                       [](const auto& waiting) { return waiting.message_case(); });
  if (older == outbox_.end()) return;
  if (newer.has_ack()) {
    v1::Ack& ack = *newer.mutable_ack();
    ack.set_seq(std::max(ack.seq(), older->ack().seq()));
    ack.set_heartbeat_us(std::max(ack.heartbeat_us(), older->ack().heartbeat_us()));
  }
  outbox_.erase(older);
}

void ExecutorStream::Close() {
  std::lock_guard lock(mutex_);
  closing_ = true;
  WriteNext();
}

void ExecutorStream::WriteNext() {
  if (writing_ || finished_) return;
  if (!outbox_.empty()) {
    writing_ = true;
    outgoing_ = std::move(outbox_.front());
    outbox_.pop_front();
    StartWrite(&outgoing_);
  } else if (closing_) {
    finished_ = true;
    Finish(grpc::Status::OK);
  }
}

void ExecutorStream::OnWriteDone(bool ok) {
  std::lock_guard lock(mutex_);
  writing_ = false;
  if (!ok) {
    closing_ = true;
    outbox_.clear();
  }
  WriteNext();
}

void ExecutorStream::ReadNext() {
  std::lock_guard lock(mutex_);
  if (!closing_) StartRead(&incoming_);
}

void ExecutorStream::OnReadDone(bool ok) {
  if (!ok) return Close();
  service_.OnMessage(id_, peer_, incoming_);
}

void ExecutorStream::OnDone() {
  service_.OnClosed(id_);
  delete this;
}

}  // namespace attune::server
