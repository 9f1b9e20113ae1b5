#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "attune/v1/executor.grpc.pb.h"

namespace attune::server {

class ExecutorService;

// One connection of an executor: reads what comes, writes what is sent, in order and without
// blocking. Lives until gRPC is done with it; others hold it as long as they like.
class ExecutorStream final : public grpc::ServerBidiReactor<v1::FromExecutor, v1::ToExecutor>,
                             public std::enable_shared_from_this<ExecutorStream> {
 public:
  static std::shared_ptr<ExecutorStream> Open(ExecutorService& service);

  // Sent after everything sent before; dropped once the stream is closing. Desired state and
  // acknowledgements that wait to be written give way to newer ones, so that an executor that reads
  // slowly gets the newest and holds up no memory.
  void Send(v1::ToExecutor message);
  void Refuse(v1::Refusal::Code code, const std::string& message);  // and close
  void Close();                                                     // after what was sent

  // Set with the Hello, before anybody else sees the stream.
  std::string executor;
  std::string instance;

  std::atomic<uint64_t> acknowledged{0};
  std::atomic<bool> leaving{false};  // it said goodbye

  // Touched on the conductor's thread only.
  bool welcomed = false;
  uint64_t revision = 0;
  std::string desired;  // the last one sent, serialised

 private:
  explicit ExecutorStream(ExecutorService& service) : service_(service) {}

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { Close(); }
  void OnDone() override;

  void Handle(v1::FromExecutor& message);
  void Supersede(v1::ToExecutor& newer);  // REQUIRES: mutex_ is held
  void WriteNext();                       // REQUIRES: mutex_ is held

  ExecutorService& service_;
  std::shared_ptr<ExecutorStream> self_;  // until OnDone
  v1::FromExecutor incoming_;

  std::mutex mutex_;
  std::deque<v1::ToExecutor> outbox_;
  v1::ToExecutor outgoing_;  // being written while writing_
  bool writing_ = false;
  bool closing_ = false;
  bool finished_ = false;
};

}  // namespace attune::server
