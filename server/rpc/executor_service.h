#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "attune/v1/executor.grpc.pb.h"
#include "base/result.h"
#include "server/conductor/conductor.h"
#include "server/conductor/thread_pool.h"
#include "server/rpc/requests.h"
#include "server/rpc/sessions.h"

namespace attune::server {

// The number of threads that read checkpoints for executors; more requests wait.
inline constexpr int kFetchThreads = 8;
inline constexpr int kFetchesMax = 64;  // the most requests that wait

// The service for executors: Sessions with gRPC's streams, a lock and a steady clock. It also
// requests logs of ranks and checkpoints from executors.
class ExecutorService final : public v1::Executors::CallbackService,
                              public Listener,
                              private Submissions {
 public:
  struct FilePiece {
    std::string data;
    uint64_t file_bytes = 0;
  };
  // Reads a part of a checkpoint's file, wherever it is stored. Blocks.
  using ReadPiece = std::function<Result<FilePiece>(const CheckpointId& id, const std::string& file,
                                                    uint64_t offset, uint32_t limit_bytes)>;
  // Reads a piece of a part of a snapshot of code. Blocks.
  using ReadCode = std::function<Result<FilePiece>(
      const std::string& digest, const std::string& part, uint64_t offset, uint32_t limit_bytes)>;
  struct Options {
    // Whether a token allows its owner to join as an executor. Called often, by any thread.
    std::function<bool(const std::string& token)> may_join;
    // The next three are those of Sessions::Options.
    std::function<LogIdentity()> new_identity = {};
    std::function<bool()> awaits_identity = [] { return false; };
    uint64_t run = 0;
    std::chrono::milliseconds lease_ttl;
    SecretValues value_of = {};  // values of secrets that programs need; must be fast
    StoreVariables store_variables = {};
    std::function<bool(const std::string& executor)> is_uploading = [](const auto&) {
      return false;
    };
    // Masks secrets in texts of failed programs. Called by several threads. Empty: nothing is
    // masked.
    std::function<void(std::string& text)> mask = {};
    ReadPiece read_piece =
        {};  // for executors that fetch others' checkpoints; called by several threads
    ReadCode read_code = {};  // for executors that fetch code; called by several threads
  };
  struct LogSlice {
    std::string data;
    uint64_t offset = 0;
    uint64_t file_bytes = 0;
    uint64_t gap_begin = 0;  // see v1::LogChunk
    uint64_t gap_end = 0;
  };

  // The conductor must outlive the service. The service subscribes itself.
  ExecutorService(Conductor& conductor, Options options);

  bool Connected(const std::string& executor) const;
  Reach ReachOf(const std::string& executor) const;  // see Sessions, like the next method
  std::optional<Sessions::Pulse> PulseOf(const std::string& executor) const;
  std::optional<Sessions::StorageUse> StorageUseOf(const std::string& executor) const;
  void SetUploads(const std::string& executor, v1::Uploads uploads);
  void CheckReleases();

  // Reads a part of a rank's log from the executor that holds it. Blocks until the answer arrives.
  // Errors: those of Requests.
  Result<LogSlice> ReadLog(const std::string& executor, const AttemptId& attempt, int rank,
                           int64_t offset, uint32_t limit_bytes);

  // A part of a file of a checkpoint.
  struct PieceRequest {
    TrialId trial;
    std::string folder;  // in the folder of the trial's checkpoints
    std::string file;
    uint64_t offset = 0;
    uint32_t limit_bytes = 0;
  };
  // Reads it from an executor that has it. Blocks until the answer arrives. Errors: those of
  // Requests.
  Result<v1::CheckpointPiece> ReadCheckpoint(const std::string& executor,
                                             const PieceRequest& wanted);

  // Sets a function that is called with the peer of each call with a valid token. It returns false
  // if the call must be refused because there are too many connections. Null: no call is refused.
  using Authenticated = std::function<bool(const std::string& peer)>;
  void SetAuthenticated(Authenticated authenticated);

  // Declares every executor lost whose lease has run out. Call it a few times per lease.
  void CheckLeases();

  void OnStarted(const Brain& brain) override;
  void OnState(EventSeq durable, const Status& writable) override;
  void OnDurable(std::span<const Event> events, const Brain& brain) override;

  grpc::ServerBidiReactor<v1::FromExecutor, v1::ToExecutor>* Connect(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Deliver(grpc::CallbackServerContext* context,
                                    const v1::CheckpointPiece* piece, v1::Delivered*) override;
  grpc::ServerUnaryReactor* Fetch(grpc::CallbackServerContext* context,
                                  const v1::FetchRequest* request,
                                  v1::CheckpointPiece* piece) override;

  // Stops reading checkpoints for executors; waiting requests end without an answer.
  void StopFetching() { fetching_.Stop(); }

 private:
  friend class ExecutorStream;

  // The streams call these three.
  SessionId OnOpened(ExecutorLink& link);
  // Moves the facts out of `message`. `peer` is gRPC's name of the other end.
  void OnMessage(SessionId id, const std::string& peer, v1::FromExecutor& message);
  void OnClosed(SessionId id);

  // Returns the refusal of a call with this token, or OK if the call may continue.
  grpc::Status Authenticate(const std::string& token, const std::string& peer) const;

  // Queues a message for an executor. Returns false if it is not connected.
  bool Send(const std::string& executor, v1::ToExecutor message);

  // These call the conductor. Its callbacks run under this object's lock.
  void Submit(Command command, Done done) override;
  void Record(std::vector<Command> facts, Stored stored) override;
  void RecordEnds(std::vector<Command> facts) override;
  void Post(StateReader look) override;
  void CheckForStarts() override { conductor_.CheckForStarts(); }

  Conductor& conductor_;
  const std::function<bool(const std::string& token)> may_join_;
  const std::function<void(std::string& text)> mask_;
  const ReadPiece read_piece_;
  const ReadCode read_code_;
  Requests<v1::LogChunk> logs_{kLogWaitLimits};
  Requests<v1::CheckpointPiece> pieces_{kPieceWaitLimits};
  ThreadPool fetching_;
  std::atomic<int> fetches_ = 0;  // requests that wait for a thread

  mutable std::mutex authenticated_mutex_;
  Authenticated authenticated_;

  // Recursive, because a stopping conductor calls back from within the call.
  mutable std::recursive_mutex mutex_;
  Sessions sessions_;
};

}  // namespace attune::server
