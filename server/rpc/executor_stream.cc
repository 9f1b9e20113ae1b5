#include "server/rpc/executor_stream.h"

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
  outbox_.push_back(std::move(message));
  WriteNext();
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
    StartWrite(&outbox_.front());
  } else if (closing_) {
    finished_ = true;
    Finish(grpc::Status::OK);
  }
}

void ExecutorStream::OnWriteDone(bool ok) {
  std::lock_guard lock(mutex_);
  writing_ = false;
  outbox_.pop_front();
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
