#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "attune/v1/executor.pb.h"
#include "base/result.h"
#include "core/brain/brain.h"
#include "server/conductor/queue.h"
#include "server/conductor/submissions.h"
#include "server/rpc/affected_executors.h"
#include "server/rpc/convert.h"
#include "server/rpc/desired.h"

namespace attune::server {

// The sessions' view of one connection of an executor.
class ExecutorLink {
 public:
  virtual ~ExecutorLink() = default;
  virtual void Send(v1::ToExecutor message) = 0;  // after all earlier messages
  virtual void Close() = 0;                       // after all earlier messages
  virtual void ReadNext() = 0;                    // reads the next message
};

using SessionId = uint64_t;

// The memory limits for facts that wait for the disk, of one executor and of all. Beyond a limit
// the server stops reading, and gRPC's flow control slows the executor down. One message of each
// executor is always accepted.
inline constexpr size_t kSessionBytesMax = 48 << 20;
inline constexpr size_t kSessionsBytesMax = 96 << 20;

// Manages the state of executors' connections, without threads, sockets or a clock. Facts become
// commands. Durable events become desired state and acknowledgements.
//
// Leases do not depend on the log:
// - An executor that the log knows as not lost is welcomed, and its heartbeats are answered, even
// if the store refuses writes. While the log is still being read, every executor is welcomed, but
// no gang is placed.
// - Facts that cannot be stored are dropped. Once they can be stored, the stream is closed, and the
// executor sends them again.
// - Only an unknown executor needs the store to join.
// - While the store refuses writes, no gang is placed.
//
// An executor may have seen events that the log lacks, because a backup was restored. The log then
// gets another identity before the executor joins.
//
// An executor is lost if it was silent for longer than its lease plus a margin. By then it has
// killed its gangs, so they can be placed elsewhere. The connection of a lost executor is closed:
// it has to join again.
//
// The owner serialises the callbacks of Submissions with the calls of this object. A callback may
// run within the call that passed it.
class Sessions {
 public:
  struct Options {
    // Whether a token allows its owner to join as an executor.
    std::function<bool(const std::string& token)> may_join;
    // a random identity, for a log that lacks events
    std::function<LogIdentity()> new_identity = {};
    // Whether a new log or a restored backup still has no identity (LogKeeper). OnStarted calls it.
    std::function<bool()> awaits_identity = [] { return false; };
    uint64_t run = 0;            // see Desired.server_run
    SecretValues value_of = {};  // values of secrets that programs need; must be fast
    StoreVariables store_variables = {};
    // Whether a connected executor still has, or may get, checkpoints to upload. When that changes,
    // call CheckReleases().
    std::function<bool(const std::string& executor)> is_uploading = [](const auto&) {
      return false;
    };
    int64_t lease_ttl_us = 0;
    int64_t patience_us = 0;  // the silence after which an executor is lost; longer than a lease
  };

  // `submissions` outlives the sessions.
  Sessions(Submissions& submissions, Options options);

  // Adds a connection. The link outlives its OnClosed and reads its first message without ReadNext.
  // It is closed if that message is not a hello, or if none arrives within the patience.
  SessionId OnOpened(ExecutorLink& link, Time now);
  void OnHello(SessionId id, const v1::Hello& hello, Time now);
  // Called instead of OnHello if the server has too many connections of executors.
  void OnTooManyConnections(SessionId id);
  void OnFacts(SessionId id, FactBatch batch, Time now);
  void OnHeartbeat(SessionId id, const v1::Heartbeat& heartbeat, Time now);
  void OnGoodbye(SessionId id, const v1::Goodbye& goodbye);
  void OnHealth(SessionId id, const v1::Health& health);
  void OnStorage(SessionId id, const v1::StorageStatus& status);
  // Handles a message that the sessions do not process. Returns the executor that sent it; empty:
  // none.
  std::string OnOtherMessage(SessionId id);
  // Returns the executor that lost its connection; empty: none.
  std::string OnClosed(SessionId id);

  // Call it a few times per lease. The clock of `now` must not go back.
  void OnTime(Time now);

  // The notifications of a Listener.
  void OnStarted(const Brain& brain, Time now);
  void OnState(const Status& writable);
  void OnDurable(std::span<const Event> events, const Brain& brain);

  bool Connected(const std::string& executor) const;

  // The state of a connected executor.
  struct Pulse {
    int64_t silent_us = 0;        // time since its last message
    int64_t disk_free_bytes = 0;  // from its newest heartbeat; 0: unknown, also below
    int64_t memory_free_bytes = 0;
  };
  std::optional<Pulse> PulseOf(const std::string& executor, Time now) const;

  // What the executor can do. A connected executor can send checkpoints. If it is not leaving,
  // gangs may be placed on it as well.
  //
  // After a start no executor is reachable until all that are not lost have come back, or had time
  // to. Otherwise the free slots would look fewer than they are.
  Reach ReachOf(const std::string& executor) const;

  // How a connected executor uses object stores.
  struct StorageUse {
    bool stores = false;            // Hello.stores
    std::string problem;            // why its uploads are paused; empty: they are not
    std::set<std::string> skipped;  // StorageStatus.skipped since it connected
  };
  std::optional<StorageUse> StorageUseOf(const std::string& executor) const;

  // Releases executors that are leaving and no longer have uploads.
  void CheckReleases();

  // Sends the list to the executor now, and after each reconnect until the next call.
  void SetUploads(const std::string& executor, v1::Uploads uploads);

  ExecutorLink* LinkOf(const std::string& executor);  // null if it is not connected

 private:
  enum class Stage { kBeforeHello, kWaiting, kJoining, kJoined };
  struct Session {
    ExecutorLink* link = nullptr;
    Time opened;
    Stage stage = Stage::kBeforeHello;
    v1::Hello hello;
    Incarnation incarnation;  // set once it has joined
    bool welcomed = false;
    bool leaving = false;        // it has said goodbye
    bool saves = false;          // its gangs must still be asked to save and leave
    bool stays = false;          // it stays while others need its checkpoints
    bool dropped_facts = false;  // facts of it were dropped
    // its last report of health since the welcome; empty: it is healthy
    std::optional<std::string> problem;
    std::string storage_problem;            // StorageUse::problem
    std::set<std::string> skipped_uploads;  // StorageUse::skipped
    bool closing = false;
    size_t pending = 0;             // bytes of facts that wait to be stored
    bool storing = false;           // the conductor is storing a batch
    std::deque<FactBatch> waiting;  // batches that wait for their turn
    uint64_t acknowledged = 0;
    uint64_t revision = 0;                // of the last Desired; 0: the first one was not sent yet
    std::vector<SweepFiles> lost_sweeps;  // sweeps of its hello that a lost part of the log created
    std::string desired;                  // the last Desired that was sent, serialised
    bool removals = false;                // the last Desired contained removals
  };
  struct Executor {
    // State from the log.
    std::string instance;
    Incarnation incarnation;
    bool lost = true;
    // State from the messages of the executor.
    bool losing = false;  // the command that declares it lost is submitted
    Time heard;
    Pulse pulse;             // without silent_us
    int64_t started_us = 0;  // start time of its newest known process
    SessionId session = 0;   // 0: none
  };

  void SendUploads(const Session& session) const;
  bool IsUploading(const Session& session) const;
  Session* Find(SessionId id);         // null if it is closed or closing
  Session* FindGreeted(SessionId id);  // null, and closes the session, if it has not said hello
  void Refuse(Session& session, v1::Refusal::Code code, const std::string& message);
  void Close(Session& session);
  std::optional<v1::Refusal> FindFault(const v1::Hello& hello) const;
  std::string FindMissingEvents(const v1::Hello& hello) const;  // empty: the log is complete
  void IdentifyLog(SessionId id, std::string reason);
  void Join(SessionId id);
  void OnJoined(SessionId id, const Result<std::span<const Event>>& joined);
  void TakeOver(SessionId id);  // makes it the connection of its executor
  void Welcome(Session& session);
  void Store(SessionId id, Session& session);
  void OnStored(SessionId id, uint64_t last, size_t bytes, const Status& stored);
  void RecordEnds(std::vector<Command> facts);
  void Release(Session& session, size_t bytes);
  void ReleaseIfUnneeded(Session& session, const Brain& brain);
  void Acknowledge(Session& session, int64_t heartbeat_us);
  void SubmitHealth(SessionId id, const Session& session);
  void SubmitLeave(SessionId id, Session& session);
  void SendDesired(Session& session, const Brain& brain);
  void SendInventory(Session& session, const Brain& brain);
  std::optional<v1::PieceServer> PieceServerOf(const std::string& executor) const;
  bool WasRestored(const State& state, Time now) const;
  void JoinWaiting();
  void Apply(const LogIdentified& identified);
  void Apply(const ExecutorJoined& joined);
  void Apply(const ExecutorLost& lost);
  void NoteMessage(const Session& session, Time now);
  bool IsSilent(const Executor& executor) const;  // whether it has been silent for too long
  void ReadNextOrHold(SessionId id, Session& session);
  bool MayRead(const Session& session) const;
  bool AllReconnected() const;
  void AllowStartsIfReconnected();
  void CloseAfterDroppedFacts(const std::string& why);

  Submissions& submissions_;
  const Options options_;
  std::map<SessionId, Session> sessions_;
  SessionId last_session_ = 0;
  std::map<std::string, Executor> executors_;  // executors that are not lost, or that sent messages
  std::map<std::string, v1::Uploads> uploads_;  // by executor; see SetUploads
  AffectedExecutors affected_;
  std::set<SessionId> held_;  // sessions that are not read at present
  size_t pending_ = 0;        // of all sessions together
  LogIdentity identity_;      // of the log
  SweepId last_sweep_;
  EventSeq start_seq_;            // the newest event at the end of the start
  bool identifying_ = false;      // a new identity was submitted
  bool awaits_identity_ = false;  // executors must wait until the log has its identity
  bool restored_ = false;         // a backup was restored recently
  bool started_ = false;
  bool refused_ = false;  // the store refused the last write
  bool settled_ = false;
  Time settle_by_;
  Time now_;  // the time of the last call
};

}  // namespace attune::server
