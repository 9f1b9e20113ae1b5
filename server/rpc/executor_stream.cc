#include "server/rpc/executor_stream.h"

#include <algorithm>
#include <utility>

#include "server/rpc/executor_service.h"

namespace attune::server {

std::shared_ptr<ExecutorStream> ExecutorStream::Open(ExecutorService& service) {
  std::shared_ptr<ExecutorStream> stream(new ExecutorStream(service));
  stream->self_ = stream;
  stream->StartRead(&stream->incoming_);
  return stream;
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

void ExecutorStream::Refuse(v1::Refusal::Code code, const std::string& message) {
  v1::ToExecutor refusal;
  refusal.mutable_refusal()->set_code(code);
  refusal.mutable_refusal()->set_message(message);
  Send(std::move(refusal));
  Close();
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

void ExecutorStream::OnReadDone(bool ok) {
  if (!ok) return Close();
  Handle(incoming_);
  StartRead(&incoming_);
}

void ExecutorStream::Handle(v1::FromExecutor& message) {
  const auto self = shared_from_this();
  switch (message.message_case()) {
    case v1::FromExecutor::kHello:
      if (executor.empty()) service_.OnHello(self, message.hello());
      return;
    case v1::FromExecutor::kFacts:
      service_.OnFacts(self, *message.mutable_facts());
      return;
    case v1::FromExecutor::kHeartbeat:
      service_.OnHeartbeat(self, message.heartbeat());
      return;
    case v1::FromExecutor::kLogChunk:
      service_.OnLogChunk(message.log_chunk());
      return;
    case v1::FromExecutor::kGoodbye:
      leaving = true;
      return;
    case v1::FromExecutor::MESSAGE_NOT_SET:
      return;
  }
}

void ExecutorStream::OnDone() {
  service_.OnClosed(shared_from_this());
  self_.reset();
}

}  // namespace attune::server
