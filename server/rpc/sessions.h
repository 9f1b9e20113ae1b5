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
#include "server/rpc/convert.h"
#include "server/rpc/touched.h"

namespace attune::server {

// One connection of an executor, as the sessions see it.
class ExecutorLink {
 public:
  virtual ~ExecutorLink() = default;
  virtual void Send(v1::ToExecutor message) = 0;  // after all that was sent before
  virtual void Close() = 0;                       // after what was sent
  virtual void ReadOn() = 0;                      // its next message may come
};

using SessionId = uint64_t;

// So much of what executors said may wait for the disk: of one of them, and of all. Beyond that
// they are not read on, and gRPC's flow control slows them down; one message of each is always
// taken.
inline constexpr size_t kSessionBytesMax = 48 << 20;
inline constexpr size_t kSessionsBytesMax = 96 << 20;

// What the server knows of executors' connections, without threads, sockets or a clock: facts
// become commands, what became durable becomes desired state and acknowledgements.
//
// Leases are no matter of the log. An executor that the log knows, and does not call lost, is
// welcomed and its heartbeats are answered whatever the store says; so is any other while the log
// is still being read, when nothing is given away. Facts that cannot be stored are dropped, and
// asked for again by closing the stream once they can be. Only the joining of an unknown one needs
// the store. While the store refuses, no gang is placed.
//
// An executor may have seen events that the log lacks, because a backup was restored. Then the log
// gets another identity before the executor joins.
//
// An executor is lost when nothing was heard from it for longer than its lease, with a margin, so
// that it has torn its gangs down before they are given away. One that is called lost is not left
// connected: it has to join again.
//
// Callbacks to Submissions are made one at a time with the calls of this object; one may come out
// of the call that it was given to.
class Sessions {
 public:
  struct Options {
    // Whether a token allows to join as an executor.
    std::function<bool(const std::string& token)> may_join;
    std::function<LogIdentity()> new_identity = {};  // random, for a log that lacks events
    // Whether the log, which is new or a restored backup, has no identity yet (LogKeeper).
    // OnStarted asks it.
    std::function<bool()> awaits_identity = [] { return false; };
    uint64_t run = 0;            // Desired.server_run
    SecretValues value_of = {};  // of secrets that programs need; quick
    int64_t lease_ttl_us = 0;
    int64_t patience_us = 0;  // until an executor is lost; longer than a lease
  };

  // The conductor's side outlives the sessions.
  Sessions(Submissions& submissions, Options options);

  // The link outlives its OnClosed. Its first message is read without being asked for. It is closed
  // where that is no hello, or none comes within the patience.
  SessionId OnOpened(ExecutorLink& link, Time now);
  void OnHello(SessionId id, const v1::Hello& hello, Time now);
  // Instead of OnHello, if the server has too many connections of executors.
  void OnTooMany(SessionId id);
  void OnFacts(SessionId id, FactBatch batch, Time now);
  void OnHeartbeat(SessionId id, const v1::Heartbeat& heartbeat, Time now);
  void OnGoodbye(SessionId id, const v1::Goodbye& goodbye);
  void OnHealth(SessionId id, const v1::Health& health);
  // A message that is no matter of the sessions'. Returns the executor that says it; empty: nobody.
  std::string OnOther(SessionId id);
  // Returns the executor whose connection it was; empty: nobody's.
  std::string OnClosed(SessionId id);

  // To be called a few times a lease. `now` is of a clock that does not go back.
  void OnTime(Time now);

  // As a Listener hears it.
  void OnStarted(const Brain& brain, Time now);
  void OnState(const Status& writable);
  void OnDurable(std::span<const Event> events, const Brain& brain);

  bool Connected(const std::string& executor) const;

  // What is heard of one that is connected.
  struct Pulse {
    int64_t silent_us = 0;        // since it was heard last
    int64_t disk_free_bytes = 0;  // as its newest heartbeat says; 0: not known, as below
    int64_t memory_free_bytes = 0;
  };
  std::optional<Pulse> PulseOf(const std::string& executor, Time now) const;

  // Whether it can send checkpoints: it is connected. Whether gangs may be placed on it: it is not
  // leaving either. After a start neither is so of anybody until all that are not lost are back, or
  // had the time to be: what is free would look like less than it is.
  Reach ReachOf(const std::string& executor) const;

  ExecutorLink* LinkOf(const std::string& executor);  // null when it is not connected

 private:
  enum class Stage { kSilent, kWaiting, kJoining, kJoined };
  struct Session {
    ExecutorLink* link = nullptr;
    Time opened;
    Stage stage = Stage::kSilent;
    v1::Hello hello;
    Incarnation incarnation;  // once joined
    bool welcomed = false;
    bool leaving = false;                // it said goodbye
    bool saves = false;                  // what runs there is yet to be asked to save and leave
    bool stays = false;                  // for those who need checkpoints of it
    bool deaf = false;                   // facts of it were dropped
    std::optional<std::string> problem;  // as it has said since it was welcomed; empty: it is well
    bool closing = false;
    size_t pending = 0;             // bytes of facts that wait to be stored
    bool storing = false;           // some of them are with the conductor
    std::deque<FactBatch> waiting;  // the others, which go there next
    uint64_t acknowledged = 0;
    uint64_t revision = 0;  // of the last Desired; 0: OnJoined has not sent the first one yet
    std::vector<SweepFiles> lost_sweeps;  // of its hello: what a lost part of the log created
    std::string desired;                  // the last one sent, serialised
    bool removals = false;                // there were any in it
  };
  struct Executor {
    // As the log has it.
    std::string instance;
    Incarnation incarnation;
    bool lost = true;
    // As it is heard.
    bool losing = false;  // the log is about to call it lost
    Time heard;
    Pulse pulse;             // but for the silence
    int64_t started_us = 0;  // of the newest process that was heard
    SessionId session = 0;   // 0: none
  };

  Session* Find(SessionId id);     // null when it has gone or is about to
  Session* Speaker(SessionId id);  // that has said hello; one that has not is closed
  void Refuse(Session& session, v1::Refusal::Code code, const std::string& message);
  void Close(Session& session);
  std::optional<v1::Refusal> Fault(const v1::Hello& hello) const;
  std::string WhyLogIsBehind(const v1::Hello& hello) const;  // empty: it is not
  void IdentifyLog(SessionId id, std::string reason);
  void Join(SessionId id);
  void OnJoined(SessionId id, const Result<std::span<const Event>>& joined);
  void TakeOver(SessionId id);  // it is its executor's connection from now on
  void Welcome(Session& session);
  void Store(SessionId id, Session& session);
  void OnStored(SessionId id, uint64_t last, size_t bytes, const Status& stored);
  void RecordEnds(std::vector<Command> facts);
  void Release(Session& session, size_t bytes);
  void ReleaseIfUnneeded(Session& session, const Brain& brain);
  void Acknowledge(Session& session, int64_t heartbeat_us);
  void TellHealth(SessionId id, const Session& session);
  void TellLeave(SessionId id, Session& session);
  void SendDesired(Session& session, const Brain& brain);
  void SendInventory(Session& session, const Brain& brain);
  std::optional<v1::PieceServer> PieceServerOf(const std::string& executor) const;
  bool WasRestored(const State& state, Time now) const;
  void JoinWaiting();
  void Learn(const LogIdentified& identified);
  void Learn(const ExecutorJoined& joined);
  void Learn(const ExecutorLost& lost);
  void Hear(const Session& session, Time now);
  bool Silent(const Executor& executor) const;  // for too long
  void ReadOnOrHold(SessionId id, Session& session);
  bool MayRead(const Session& session) const;
  bool AllBack() const;
  void Settle();
  void CloseDeaf(const std::string& why);

  Submissions& submissions_;
  const Options options_;
  std::map<SessionId, Session> sessions_;
  SessionId last_session_ = 0;
  std::map<std::string, Executor> executors_;  // that are not lost, or heard
  Touched touched_;
  std::set<SessionId> held_;  // that are not read on
  size_t pending_ = 0;        // of all sessions
  LogIdentity identity_;      // of the log
  SweepId last_sweep_;
  EventSeq start_seq_;            // the newest event when the log had been read
  bool identifying_ = false;      // another identity is about to begin
  bool awaits_identity_ = false;  // no executor joins until the log has its identity
  bool restored_ = false;         // a backup was restored a short time ago
  bool started_ = false;
  bool refused_ = false;  // by the store, what was told it last
  bool settled_ = false;
  Time settle_by_;
  Time now_;  // as it was last said
};

}  // namespace attune::server
