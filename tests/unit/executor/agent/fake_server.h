#pragma once

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "attune/v1/executor.grpc.pb.h"
#include "tests/unit/executor/harness.h"

namespace attune::agent {

// A fake server for the executor protocol.
class FakeServer final : public v1::Executors::Service {
 public:
  FakeServer() {
    grpc::ServerBuilder builder;
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  ~FakeServer() override {
    Drop();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  std::shared_ptr<grpc::Channel> Channel() { return server_->InProcessChannel({}); }

  // Waits for the next message for which `read` returns a value.
  template <typename Read>
  auto Next(Read read) -> decltype(read(std::declval<const v1::FromExecutor&>())) {
    std::unique_lock lock(mutex_);
    decltype(read(std::declval<const v1::FromExecutor&>())) found;
    changed_.wait_for(lock, gang::kDeadline, [&] {
      while (!found && next_ < received_.size()) found = read(received_[next_++]);
      return found.has_value();
    });
    EXPECT_TRUE(found) << "the message did not come";
    return found;
  }

  v1::Hello NextHello() {
    return Next([](const v1::FromExecutor& message) {
             return message.has_hello() ? std::optional(message.hello()) : std::nullopt;
           })
        .value_or(v1::Hello());
  }

  v1::Heartbeat NextHeartbeat() {
    return Next([](const v1::FromExecutor& message) {
             return message.has_heartbeat() ? std::optional(message.heartbeat()) : std::nullopt;
           })
        .value_or(v1::Heartbeat());
  }

  v1::Health NextHealth() {
    return Next([](const v1::FromExecutor& message) {
             return message.has_health() ? std::optional(message.health()) : std::nullopt;
           })
        .value_or(v1::Health());
  }

  v1::LogChunk NextLogChunk() {
    return Next([](const v1::FromExecutor& message) {
             return message.has_log_chunk() ? std::optional(message.log_chunk()) : std::nullopt;
           })
        .value_or(v1::LogChunk());
  }

  // The pieces of checkpoints that were sent, in order.
  v1::CheckpointPiece NextPiece() {
    std::unique_lock lock(mutex_);
    const bool came =
        changed_.wait_for(lock, gang::kDeadline, [&] { return next_piece_ < pieces_.size(); });
    EXPECT_TRUE(came) << "the piece did not come";
    return came ? pieces_[next_piece_++] : v1::CheckpointPiece();
  }

  // Returns the next fact of this kind and skips the facts before it.
  v1::Fact NextFact(v1::Fact::FactCase kind) {
    std::unique_lock lock(mutex_);
    std::optional<v1::Fact> found;
    changed_.wait_for(lock, gang::kDeadline, [&] {
      while (!found && next_fact_ < facts_.size()) {
        if (facts_[next_fact_].fact_case() == kind) found = facts_[next_fact_];
        ++next_fact_;
      }
      return found.has_value();
    });
    EXPECT_TRUE(found) << "the fact did not come";
    return found.value_or(v1::Fact());
  }

  // All facts of all connections so far.
  std::vector<v1::Fact> Facts() {
    const std::lock_guard lock(mutex_);
    return facts_;
  }

  void Send(const v1::ToExecutor& message) {
    const std::lock_guard lock(mutex_);
    if (stream_) stream_->Write(message);
  }

  // Waits for a Hello and welcomes it.
  v1::Hello Welcome(uint32_t lease_ttl_ms = 60'000, uint32_t heartbeat_ms = 10'000) {
    v1::Hello hello = NextHello();
    SendWelcome(lease_ttl_ms, heartbeat_ms);
    return hello;
  }

  void SendWelcome(uint32_t lease_ttl_ms = 60'000, uint32_t heartbeat_ms = 10'000) {
    v1::ToExecutor message;
    message.mutable_welcome()->set_incarnation(1);
    message.mutable_welcome()->set_lease_ttl_ms(lease_ttl_ms);
    message.mutable_welcome()->set_heartbeat_ms(heartbeat_ms);
    Send(message);
  }

  void SetDesired(const std::vector<v1::Assignment>& assignments) {
    v1::ToExecutor message;
    message.mutable_desired()->set_revision(++revision_);
    for (const v1::Assignment& assignment : assignments) {
      *message.mutable_desired()->add_assignments() = assignment;
    }
    Send(message);
  }

  void Acknowledge(uint64_t seq) {
    v1::ToExecutor message;
    message.mutable_ack()->set_seq(seq);
    Send(message);
  }

  void Answer(const v1::Heartbeat& heartbeat) {
    v1::ToExecutor message;
    message.mutable_ack()->set_heartbeat_us(heartbeat.time_us());
    Send(message);
  }

  void Refuse(v1::Refusal::Code code, const std::string& text) {
    v1::ToExecutor message;
    message.mutable_refusal()->set_code(code);
    message.mutable_refusal()->set_message(text);
    Send(message);
  }

  // Breaks the current connection.
  void Drop() {
    std::unique_lock lock(mutex_);
    if (!stream_) return;
    context_->TryCancel();
    changed_.wait_for(lock, gang::kDeadline, [this] { return stream_ == nullptr; });
  }

 private:
  using Stream = grpc::ServerReaderWriter<v1::ToExecutor, v1::FromExecutor>;

  grpc::Status Connect(grpc::ServerContext* context, Stream* stream) override {
    {
      const std::lock_guard lock(mutex_);
      stream_ = stream;
      context_ = context;
    }
    v1::FromExecutor message;
    while (stream->Read(&message)) {
      const std::lock_guard lock(mutex_);
      received_.push_back(message);
      for (const v1::Fact& fact : message.facts().facts()) facts_.push_back(fact);
      changed_.notify_all();
    }
    const std::lock_guard lock(mutex_);
    if (stream_ == stream) stream_ = nullptr;
    changed_.notify_all();
    return grpc::Status::OK;
  }

  grpc::Status Deliver(grpc::ServerContext*, const v1::CheckpointPiece* piece,
                       v1::Delivered*) override {
    const std::lock_guard lock(mutex_);
    pieces_.push_back(*piece);
    changed_.notify_all();
    return grpc::Status::OK;
  }

  grpc::Status Fetch(grpc::ServerContext*, const v1::FetchRequest*, v1::CheckpointPiece*) override {
    return {grpc::StatusCode::NOT_FOUND, "no executor has it"};
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Stream* stream_ = nullptr;
  grpc::ServerContext* context_ = nullptr;
  std::vector<v1::FromExecutor> received_;
  std::vector<v1::Fact> facts_;
  size_t next_ = 0;
  size_t next_fact_ = 0;
  std::vector<v1::CheckpointPiece> pieces_;
  size_t next_piece_ = 0;
  uint64_t revision_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace attune::agent
