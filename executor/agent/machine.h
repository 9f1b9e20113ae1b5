#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "attune/v1/executor.pb.h"
#include "executor/agent/agent_exit.h"
#include "executor/agent/backoff.h"
#include "executor/agent/outbox.h"
#include "executor/agent/reconciler.h"
#include "executor/gang/facts.h"
#include "executor/gang/folders.h"
#include "executor/gang/gang.h"
#include "executor/gang/spec.h"
#include "executor/health/host_health.h"
#include "executor/processes/boot_clock.h"
#include "executor/transfer/removals.h"

namespace attune::agent {

inline constexpr std::chrono::milliseconds kWelcomeTimeout{10'000};
inline constexpr std::chrono::milliseconds kFarewellTimeout{1'000};  // for the last acknowledgement
inline constexpr std::chrono::milliseconds kHeartbeatMin{10};
inline constexpr std::chrono::milliseconds kResendAfter{30'000};  // without an acknowledgement
// From the lease's end to the gangs' deadline, or an eighth of the lease if that is shorter: for
// this process to tear them down by itself, well before the server gives them away.
inline constexpr std::chrono::milliseconds kDeadlineMarginMax{500};
inline constexpr size_t kLogRequestsMax = 64;
// The newest ones that have files here, so many, of which the server says which are deleted.
inline constexpr size_t kSweepsSaid = 15'000;  // so that a Hello stays below 64 KiB

// One instant, by the clocks that an executor lives by.
struct Now {
  gang::BootClock::time_point boot;
  int64_t wall_us = 0;  // since 1970; for people, not for deciding
};

// The connection to the server, of which there is one at a time. Nothing here waits, and nothing
// calls the machine back before it has returned.
class ServerLink {
 public:
  virtual ~ServerLink() = default;
  virtual void Connect() = 0;
  // Machine::OnWritten() follows, or the connection breaks. Not called before it has.
  virtual void Write(v1::FromExecutor message) = 0;
  virtual void Close() = 0;  // Machine::OnClosed() follows
};

// The gangs of this host: gang::Supervisor, whose facts come to Machine::OnFact().
class Gangs {
 public:
  virtual ~Gangs() = default;
  virtual void Run(gang::GangSpec spec) = 0;
  virtual void Cancel(const gang::AttemptId& attempt, gang::CancelReason reason) = 0;
  virtual void Tell(const gang::AttemptId& attempt, const gang::Verdict& verdict) = 0;
  virtual void Yield(const gang::AttemptId& attempt) = 0;
  // Ranks of the gang have finished on another host.
  virtual void Finish(const gang::AttemptId& attempt) = 0;
  virtual void Meet(const gang::AttemptId& attempt, const channel::Rendezvous& rank_zero) = 0;
  // No process of any gang outlives it, even if this one does not run by then; Machine::kNever:
  // there is none. Replaces the one before it.
  virtual void SetDeadline(gang::BootClock::time_point deadline) = 0;
};

// How much of the server's log this executor has seen: v1::Desired, as it came last.
struct Seen {
  uint64_t identity = 0;  // 0: nothing
  uint64_t log_seq = 0;
  uint64_t server_run = 0;
};

// What lies on this host's disk.
class Files {
 public:
  virtual ~Files() = default;
  // All that should be gone, including what is being deleted already; Machine::OnRemoved() or
  // OnSweepRemoved() follows for each, once.
  virtual void Remove(const Removals& removals) = 0;
  // Looks for these checkpoints; Machine::OnGone() follows for each that is not there.
  virtual void LookFor(const v1::Inventory&) {}
  // Keeps it for the next process of this executor, which says it in its hello.
  virtual void KeepSeen(const Seen&) {}
  // Reads a piece of a rank's log; Machine::OnLog() follows, and no other is asked for before.
  virtual void ReadLog(const v1::LogRequest& request) = 0;
  // Reads a part of a checkpoint and brings it to the server, beside the connection.
  virtual void Deliver(const v1::CheckpointRequest& request) = 0;
};

// What an executor does, without threads, sockets and clocks: it is told what happens and what time
// it is, and acts through the three interfaces above. It keeps the connection and the lease, runs
// what the server wants to run, and tells each fact until that is acknowledged.
//
// An executor whose lease has run out does nothing that the server asked for before: a message that
// waited for a host that was suspended starts no gang.
//
// After anything was told, Step() is to be called, which writes; several things may be told before.
class Machine {
 public:
  static constexpr gang::BootClock::time_point kNever = gang::BootClock::time_point::max();

  // `hello` is what it introduces itself with, each time with the sweeps that have files here by
  // then: of those that it names and those that have run since, all that are not deleted. The seed
  // is for the pauses before it connects again. After `give_up` without a word from the server it
  // ends; 0: never. `ends`: when something else ends it, which the server is told. The interfaces
  // outlive the machine.
  Machine(v1::Hello hello, gang::Folders folders, uint64_t seed, ServerLink& link, Gangs& gangs,
          Files& files, std::chrono::milliseconds give_up = {},
          gang::BootClock::time_point ends = kNever);

  // Of the connection that is there; what comes from an earlier one is not to be told.
  void OnMessage(v1::ToExecutor message, const Now& now);
  void OnWritten() { writing_ = false; }
  void OnBroken();                                           // by the server or the network
  void OnClosed(const std::string& reason, const Now& now);  // after ServerLink::Close()

  void OnFact(const gang::Fact& fact, const Now& now);
  void OnRemoved(const v1::CheckpointRemoval& removal, const Now& now);
  void OnGone(const v1::CheckpointName& checkpoint, const Now& now);
  void OnSweepRemoved(uint64_t sweep, const Now& now);
  void OnLog(v1::LogChunk chunk);

  // What is known of the host from now on. The server is told of its problem when that changes, and
  // after each Welcome once there was one; of the figures with heartbeats.
  void OnHealth(const HostHealth& health);

  // Tears all gangs down, takes leave of the server, if it is there to listen, and is done.
  void Stop(AgentExit exit);

  // As Stop(), once the gangs have left by themselves and nobody has yet to fetch their
  // checkpoints, or `grace` is over: the server is asked to have them save at their next report. At
  // once where it is not there to listen.
  void Leave(std::chrono::milliseconds grace, const Now& now);

  // Does what is due and writes what there is to write. Returns when it is to be called again,
  // should nothing happen before; kNever when time alone brings nothing.
  gang::BootClock::time_point Step(const Now& now);

  // No gang is left, and no connection. Nothing is to be told any more.
  bool done() const { return done_; }
  const AgentExit& exit() const { return *exit_; }  // REQUIRES: done()

  // Facts gather here faster than the server takes them: until this is false again, nothing more
  // should be read from gangs. Only what they report and log waits then, and in the end those who
  // do.
  bool is_full() const { return outbox_.is_full(); }

  // Whether the server has ever taken it.
  bool has_joined() const { return has_joined_; }

  // Until when the server will not give its gangs away; kNever before it has any.
  gang::BootClock::time_point lease_until() const { return lease_until_; }

 private:
  enum class Connection { kNone, kOpening, kWelcomed, kClosing };

  void On(const v1::Welcome& welcome);
  void On(const v1::Refusal& refusal);
  void On(v1::Desired desired, const Now& now);
  void NoteSeen(const v1::Desired& desired);
  void On(const v1::Ack& ack, const Now& now);
  void On(const v1::LogRequest& request);

  void Connect(const Now& now);
  void Disconnect();
  void RenewLease(gang::BootClock::time_point sent);
  void LoseLeaseIfOver(const Now& now);
  void DropDeadlineIfAllEnded();
  void GiveUpIfAlone(const Now& now);
  gang::BootClock::time_point GiveUpAt() const;
  void CancelAll(gang::CancelReason reason);
  void Remove();
  void Reconcile(const Now& now);
  bool Act(const Reconciler::Actions& actions, const Now& now);
  void ResendIfDue(const Now& now);
  void ReadNextLog();
  void Pump(const Now& now);
  std::optional<v1::FromExecutor> NextMessage(const Now& now);
  void StopIfLeft(const Now& now);
  void TakeLeave(const Now& now);
  gang::BootClock::time_point NextDeadline() const;

  v1::Hello hello_;                      // but for the sweeps
  std::map<uint64_t, uint64_t> sweeps_;  // that may have files here, with their identities
  const gang::Folders folders_;
  ServerLink& link_;
  Gangs& gangs_;
  Files& files_;
  const std::chrono::milliseconds give_up_;
  const gang::BootClock::time_point ends_;
  Outbox outbox_;
  Reconciler reconciler_;
  Removals removals_;  // that it wants
  Backoff backoff_;

  Connection connection_ = Connection::kNone;
  bool writing_ = false;
  bool said_goodbye_ = false;
  bool said_it_stays_ = false;  // v1::Goodbye::stays
  bool released_ = false;
  bool reached_ = true;  // false once an outage has been logged
  bool has_joined_ = false;
  HostHealth health_;
  // What the server knows; null: whether it has heard the last word about a problem is not known.
  std::optional<std::string> told_problem_ = "";
  bool was_unhealthy_ = false;
  std::vector<v1::Inventory> inventories_;  // that wait for the Desired of this connection
  std::deque<v1::LogRequest> log_requests_;
  bool reading_log_ = false;
  bool nobody_waits_ = false;              // for the log that is being read
  std::optional<v1::LogChunk> log_chunk_;  // has been read, and is to be sent

  std::chrono::milliseconds lease_ttl_{0};
  std::chrono::milliseconds heartbeat_{0};
  gang::BootClock::time_point retry_at_ = gang::BootClock::time_point::min();
  gang::BootClock::time_point welcome_by_ = kNever;
  gang::BootClock::time_point heartbeat_at_ = kNever;
  gang::BootClock::time_point resend_at_ = kNever;
  gang::BootClock::time_point hello_sent_;
  gang::BootClock::time_point lease_until_ = kNever;
  std::set<gang::AttemptId> lost_;  // those still here that ran when the lease was over
  std::optional<gang::BootClock::time_point> heard_at_;  // from the server, or the first Step()

  gang::BootClock::time_point leave_by_ = kNever;  // before: what runs here is leaving
  std::optional<AgentExit> exit_;                  // set: on the way to the end
  gang::BootClock::time_point farewell_until_ = kNever;
  bool done_ = false;
};

}  // namespace attune::agent
