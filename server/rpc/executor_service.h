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

// So many executors are brought pieces of others' checkpoints at once; more take turns.
inline constexpr int kFetchThreads = 8;
inline constexpr int kFetchesMax = 64;  // that wait for their turn

// The executors' side of the server: Sessions, with gRPC's streams, a lock and a steady clock. It
// also asks executors for the logs of ranks, and for their checkpoints.
class ExecutorService final : public v1::Executors::CallbackService,
                              public Listener,
                              private Submissions {
 public:
  struct FilePiece {
    std::string data;
    uint64_t file_bytes = 0;
  };
  // A part of one of a checkpoint's files, wherever it lies; waits for it.
  using ReadPiece = std::function<Result<FilePiece>(const CheckpointId& id, const std::string& file,
                                                    uint64_t offset, uint32_t limit_bytes)>;
  struct Options {
    // Whether a token allows to join as an executor. Called often, by any thread.
    std::function<bool(const std::string& token)> may_join;
    // The next three are those of Sessions::Options.
    std::function<LogIdentity()> new_identity = {};
    std::function<bool()> awaits_identity = [] { return false; };
    uint64_t run = 0;
    std::chrono::milliseconds lease_ttl;
    SecretValues value_of = {};  // of secrets that programs need; quick
    // Hides secrets in what failed programs said; by several threads. Empty: nothing is hidden.
    std::function<void(std::string& text)> mask = {};
    ReadPiece read_piece =
        {};  // for executors that fetch checkpoints of others; by several threads
  };
  struct LogSlice {
    std::string data;
    uint64_t offset = 0;
    uint64_t file_bytes = 0;
    uint64_t gap_begin = 0;  // as of v1::LogChunk
    uint64_t gap_end = 0;
  };

  // The conductor outlives the service; the service subscribes itself.
  ExecutorService(Conductor& conductor, Options options);

  bool Connected(const std::string& executor) const;
  Reach ReachOf(const std::string& executor) const;  // as Sessions has it, as is the next
  std::optional<Sessions::Pulse> PulseOf(const std::string& executor) const;

  // Part of a rank's log, from the executor that holds it; waits for the answer. Errors are those
  // of Requests, as with the next.
  Result<LogSlice> ReadLog(const std::string& executor, const AttemptId& attempt, int rank,
                           int64_t offset, uint32_t limit_bytes);

  // A part of one of a checkpoint's files.
  struct PieceOf {
    TrialId trial;
    std::string folder;  // among the trial's checkpoints
    std::string file;
    uint64_t offset = 0;
    uint32_t limit_bytes = 0;
  };
  // From the executor that has it; waits for the answer.
  Result<v1::CheckpointPiece> ReadCheckpoint(const std::string& executor, const PieceOf& wanted);

  // `authenticated` is called with the peer of each call that shows the right token. It returns
  // false if the call is to be refused because there are too many connections. Null: no call is.
  using Authenticated = std::function<bool(const std::string& peer)>;
  void SetAuthenticated(Authenticated authenticated);

  // Declares lost every executor whose lease has run out. To be called a few times a lease.
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

  // Ends what waits for checkpoints; nothing is fetched from then on.
  void StopFetching() { fetching_.Stop(); }

 private:
  friend class ExecutorStream;

  // Called by streams.
  SessionId OnOpened(ExecutorLink& link);
  // Moves the facts out of `message`. `peer` is the name that gRPC gives the other end.
  void OnMessage(SessionId id, const std::string& peer, v1::FromExecutor& message);
  void OnClosed(SessionId id);

  // The refusal of a call with this token; OK: the call may continue.
  grpc::Status Authenticate(const std::string& token, const std::string& peer) const;

  // Whether it is connected, and now has the message to send.
  bool Send(const std::string& executor, v1::ToExecutor message);

  // The conductor's, with answers that come under this object's lock.
  void Submit(Command command, Done done) override;
  void Record(std::vector<Command> facts, Stored stored) override;
  void RecordEnds(std::vector<Command> facts) override;
  void Post(StateReader look) override;
  void CheckForStarts() override { conductor_.CheckForStarts(); }

  Conductor& conductor_;
  const std::function<bool(const std::string& token)> may_join_;
  const std::function<void(std::string& text)> mask_;
  const ReadPiece read_piece_;
  Requests<v1::LogChunk> logs_{kLogPatience};
  Requests<v1::CheckpointPiece> pieces_{kPiecePatience};
  ThreadPool fetching_;
  std::atomic<int> fetches_ = 0;  // that wait

  mutable std::mutex authenticated_mutex_;
  Authenticated authenticated_;

  // Recursive, because a conductor that stops answers in the midst of what it is asked.
  mutable std::recursive_mutex mutex_;
  Sessions sessions_;
};

}  // namespace attune::server
