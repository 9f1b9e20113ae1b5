#pragma once

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "attune/v1/executor.grpc.pb.h"
#include "base/version.h"

namespace attune::server {

// An executor that sends the messages of the test over a real stream.
class FakeExecutor {
 public:
  FakeExecutor(std::shared_ptr<grpc::Channel> channel, std::string name = "box",
               std::string instance = "a", std::string token = "secret")
      : FakeExecutor(channel, Hello(name, instance, token)) {}

  FakeExecutor(std::shared_ptr<grpc::Channel> channel, v1::Hello hello)
      : stub_(v1::Executors::NewStub(channel)), stream_(stub_->Connect(&context_)) {
    v1::FromExecutor message;
    *message.mutable_hello() = std::move(hello);
    stream_->Write(message);
  }

  static v1::Hello Hello(const std::string& name, const std::string& instance,
                         const std::string& token = "secret") {
    v1::Hello hello;
    hello.set_format(kFormat);
    hello.set_token(token);
    hello.set_name(name);
    hello.set_instance(instance);
    hello.mutable_resources()->set_cpus(2);
    return hello;
  }
  ~FakeExecutor() { Leave(); }

  void Leave() {
    if (left_) return;
    left_ = true;
    context_.TryCancel();
    stream_->Finish();
  }

  // The next message of any kind.
  v1::ToExecutor Next() {
    v1::ToExecutor message;
    stream_->Read(&message);
    return message;
  }

  // The next message of this kind; skips others.
  v1::ToExecutor Await(v1::ToExecutor::MessageCase kind) {
    v1::ToExecutor message;
    while (stream_->Read(&message)) {
      if (message.message_case() == kind) return message;
    }
    ADD_FAILURE() << "the stream closed";
    return {};
  }

  // The next desired state that satisfies the condition.
  v1::Desired AwaitDesired(const std::function<bool(const v1::Desired&)>& condition) {
    for (;;) {
      const v1::ToExecutor message = Await(v1::ToExecutor::kDesired);
      if (!message.has_desired() || condition(message.desired())) return message.desired();
    }
  }

  template <class Fill>
  void SendFact(const v1::AttemptRef& attempt, Fill fill) {
    v1::FromExecutor message;
    v1::Fact& fact = *message.mutable_facts()->add_facts();
    fact.set_seq(++seq_);
    *fact.mutable_attempt() = attempt;
    fill(fact);
    stream_->Write(message);
  }

  void Report(const v1::AttemptRef& attempt, int64_t step, double score) {
    SendFact(attempt, [&](v1::Fact& fact) {
      fact.mutable_report()->set_step(step);
      v1::Metric& metric = *fact.mutable_report()->add_metrics();
      metric.set_name("score");
      metric.set_value(score);
    });
  }

  void ReportWaiting(const v1::AttemptRef& attempt, int64_t step) {
    SendFact(attempt, [&](v1::Fact& fact) {
      fact.mutable_report()->set_step(step);
      fact.mutable_report()->set_waits(true);
      v1::Metric& metric = *fact.mutable_report()->add_metrics();
      metric.set_name("score");
    });
  }

  void SaveCheckpoint(const v1::AttemptRef& attempt, int64_t step) {
    SendFact(attempt, [&](v1::Fact& fact) {
      fact.mutable_checkpoint()->set_step(step);
      fact.mutable_checkpoint()->set_path("/data/step-" + std::to_string(step) + "-attempt-" +
                                          std::to_string(attempt.attempt()));
      fact.mutable_checkpoint()->set_digest("sha256:" + std::string(64, '0'));
    });
  }

  void SendHeartbeat(int64_t time_us) {
    v1::FromExecutor message;
    message.mutable_heartbeat()->set_time_us(time_us);
    stream_->Write(message);
  }

  void SendRemoval(const v1::CheckpointRemoval& removal) {
    v1::FromExecutor message;
    v1::Fact& fact = *message.mutable_facts()->add_facts();
    fact.set_seq(++seq_);
    v1::CheckpointRemoved& removed = *fact.mutable_removed();
    removed.set_sweep(removal.sweep());
    removed.set_trial(removal.trial());
    removed.set_attempt(removal.attempt());
    removed.set_step(removal.step());
    stream_->Write(message);
  }

  void SendSweepRemoval(uint64_t sweep) {
    v1::FromExecutor message;
    v1::Fact& fact = *message.mutable_facts()->add_facts();
    fact.set_seq(++seq_);
    fact.mutable_sweep_removed()->set_sweep(sweep);
    stream_->Write(message);
  }

  void SendGoodbye() {
    v1::FromExecutor message;
    message.mutable_goodbye();
    stream_->Write(message);
  }

  void Answer(const v1::LogChunk& chunk) {
    v1::FromExecutor message;
    *message.mutable_log_chunk() = chunk;
    stream_->Write(message);
  }

  grpc::Status Deliver(const v1::CheckpointPiece& piece) {
    grpc::ClientContext context;
    v1::Delivered delivered;
    return stub_->Deliver(&context, piece, &delivered);
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<v1::Executors::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::FromExecutor, v1::ToExecutor>> stream_;
  uint64_t seq_ = 0;
  bool left_ = false;
};

}  // namespace attune::server
