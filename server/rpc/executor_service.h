#pragma once

#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "attune/v1/executor.grpc.pb.h"
#include "server/conductor/conductor.h"

namespace attune::server {

class ExecutorStream;

// The executors' side of the server: one stream an executor. Facts become commands, what became
// durable becomes desired state and acknowledgements.
//
// An executor is reachable from the moment its joining is durable until it says goodbye or its
// stream closes. It is lost when nothing was heard from it for longer than its lease, with a
// margin, so that it has torn its gangs down before they are given away.
class ExecutorService final : public v1::Executors::CallbackService, public Listener {
 public:
  struct Options {
    std::string token;
    std::chrono::milliseconds lease_ttl;
  };
  struct LogSlice {
    std::string data;
    uint64_t offset = 0;
    uint64_t file_bytes = 0;
  };

  // The conductor outlives the service; the service subscribes itself.
  ExecutorService(Conductor& conductor, Options options);
  ~ExecutorService() override;

  bool Reachable(const std::string& executor) const;

  // Part of a rank's log, from the executor that holds it; waits for the answer. kUnavailable when
  // the executor is not connected or does not answer.
  Result<LogSlice> ReadLog(const std::string& executor, const AttemptId& attempt, int rank,
                           int64_t offset, uint32_t limit_bytes);

  // Declares lost every executor whose lease has run out. To be called a few times a lease.
  void CheckLeases();

  void OnDurable(std::span<const Event> events, const Brain& brain) override;

  grpc::ServerBidiReactor<v1::FromExecutor, v1::ToExecutor>* Connect(
      grpc::CallbackServerContext* context) override;

 private:
  friend class ExecutorStream;
  using Clock = std::chrono::steady_clock;
  using StreamPtr = std::shared_ptr<ExecutorStream>;

  // Called by streams.
  void OnHello(const StreamPtr& stream, const v1::Hello& hello);
  void OnFacts(const StreamPtr& stream, v1::Facts& facts);  // takes what they hold
  void OnHeartbeat(const StreamPtr& stream, const v1::Heartbeat& heartbeat);
  void OnLogChunk(const v1::LogChunk& chunk);
  void OnClosed(const StreamPtr& stream);

  void Heard(const ExecutorStream& stream);
  void Welcome(const StreamPtr& stream, const Result<std::span<const Event>>& joined);
  static void SendDesired(ExecutorStream& stream, const Brain& brain);
  std::chrono::milliseconds Patience() const { return options_.lease_ttl * 3 / 2; }

  Conductor& conductor_;
  const Options options_;

  mutable std::mutex mutex_;
  std::map<std::string, StreamPtr> streams_;        // joined, by executor
  std::map<std::string, Clock::time_point> heard_;  // last message of an executor
  const Clock::time_point started_ = Clock::now();
  std::map<uint64_t, std::promise<v1::LogChunk>> log_requests_;
  uint64_t last_log_request_ = 0;
};

}  // namespace attune::server
