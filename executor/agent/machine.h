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
// Time to wait for the last acknowledgement.
inline constexpr std::chrono::milliseconds kFarewellTimeout{1'000};
inline constexpr std::chrono::milliseconds kHeartbeatMin{10};
inline constexpr std::chrono::milliseconds kResendAfter{30'000};  // time without an acknowledgement
// Time from the end of the lease to the gangs' deadline, or an eighth of the lease if that is
// shorter. Within this time the process tears its gangs down itself, well before the server
// reassigns them.
inline constexpr std::chrono::milliseconds kDeadlineMarginMax{500};
inline constexpr size_t kLogRequestsMax = 64;
// Maximum number of sweeps with files on this host that a Hello lists, the newest first. The server
// answers which of them are deleted.
inline constexpr size_t kHelloSweepsMax = 15'000;  // keeps a Hello below 64 KiB

// The current time by both clocks that an executor uses.
struct Now {
  gang::BootClock::time_point boot;
  int64_t wall_us = 0;  // since 1970; for display only, never for decisions
};

// The connection to the server; at most one exists at a time. No function blocks or calls the
// machine synchronously.
class ServerLink {
 public:
  virtual ~ServerLink() = default;
  virtual void Connect() = 0;
  // Machine::OnWritten() follows, or the connection breaks. The next Write() comes only after
  // OnWritten().
  virtual void Write(v1::FromExecutor message) = 0;
  virtual void Close() = 0;  // Machine::OnClosed() follows
};

// Runs the gangs of this host: gang::Supervisor. Its facts are passed to Machine::OnFact().
class Gangs {
 public:
  virtual ~Gangs() = default;
  virtual void Run(gang::GangSpec spec) = 0;
  virtual void Cancel(const gang::AttemptId& attempt, gang::CancelReason reason) = 0;
  virtual void SetVerdict(const gang::AttemptId& attempt, const gang::Verdict& verdict) = 0;
  virtual void Yield(const gang::AttemptId& attempt) = 0;
  // The gang's ranks on another host have finished.
  virtual void OnPeersFinished(const gang::AttemptId& attempt) = 0;
  virtual void SetRendezvous(const gang::AttemptId& attempt,
                             const channel::Rendezvous& rank_zero) = 0;
  // Kills all processes of all gangs at `deadline`, even if this process is stopped then.
  // Machine::kNever removes the deadline. Replaces the previous deadline.
  virtual void SetDeadline(gang::BootClock::time_point deadline) = 0;
};

// The position in the server's log up to which this executor has seen it, from the last
// v1::Desired.
struct LogPosition {
  uint64_t identity = 0;  // of the log; 0: nothing seen
  uint64_t log_seq = 0;
  uint64_t server_run = 0;
};

// Files on this host's disk.
class Files {
 public:
  virtual ~Files() = default;
  // Sets everything that must be deleted, including deletions in progress. Machine::OnRemoved() or
  // OnSweepRemoved() follows once for each.
  virtual void Remove(const Removals& removals) = 0;
  // Checks whether these checkpoints exist; Machine::OnCheckpointGone() follows for each that is
  // missing.
  virtual void FindMissing(const v1::Inventory&) {}
  // Saves the position for the next process of this executor, which sends it in its Hello.
  virtual void SaveLogPosition(const LogPosition&) {}
  // Reads a piece of a rank's log; Machine::OnLog() follows. The next call comes only after that.
  virtual void ReadLog(const v1::LogRequest& request) = 0;
  // Reads a piece of a checkpoint and sends it to the server in a separate call.
  virtual void SendCheckpoint(const v1::CheckpointRequest& request) = 0;
  // Sets everything that must be copied to object stores, including uploads in progress.
  // Machine::OnStored() or OnUploadSkipped() follows once for each, and OnStorageProblem() when
  // uploads pause.
  virtual void Upload(const v1::Uploads& uploads) = 0;
};

// The state machine of an executor, without threads, sockets and clocks. Its caller passes in
// events and the time; it acts through the three interfaces above. It keeps the connection and the
// lease, runs the gangs that the server wants, and sends each fact until the server acknowledges
// it.
//
// When the lease has expired, earlier requests of the server no longer count. So a message that was
// delayed while the host was suspended starts no gang.
//
// After one or more events, the caller must call Step(), which writes messages.
class Machine {
 public:
  static constexpr gang::BootClock::time_point kNever = gang::BootClock::time_point::max();
  static constexpr size_t kSkippedUploadsMax = 1'000;  // the most that the server is told of

  // `hello` is the first message of each connection. The machine keeps its list of sweeps with
  // files on this host up to date. `seed` randomises the pauses between connections. The machine
  // ends after `give_up` without a message from the server; 0: never. `ends` is the time at which
  // something else ends this process; the server is told. The interfaces must outlive the machine.
  Machine(v1::Hello hello, gang::Folders folders, uint64_t seed, ServerLink& link, Gangs& gangs,
          Files& files, std::chrono::milliseconds give_up = {},
          gang::BootClock::time_point ends = kNever);

  // Events of the current connection. The caller must drop events of earlier connections.
  void OnMessage(v1::ToExecutor message, const Now& now);
  void OnWritten() { writing_ = false; }
  void OnBroken();                                           // the server or the network ended it
  void OnClosed(const std::string& reason, const Now& now);  // after ServerLink::Close()

  void OnFact(const gang::Fact& fact, const Now& now);
  void OnRemoved(const v1::CheckpointRemoval& removal, const Now& now);
  void OnCheckpointGone(const v1::CheckpointName& checkpoint, const Now& now);
  void OnSweepRemoved(uint64_t sweep, const Now& now);
  void OnLog(v1::LogChunk chunk);
  // A new record of the environment for the attempt and those after it.
  void OnRecorded(const gang::AttemptId& attempt, std::string record, const Now& now);

  // A wanted upload is complete, or the copy in a store is damaged; then `address` is empty.
  void OnStored(const v1::CheckpointName& checkpoint, const std::string& digest,
                const std::string& address, const Now& now);
  // Sets why uploads are paused; empty: they are not. The server is told after a change, and again
  // after each Welcome while there is a problem.
  void OnStorageProblem(const std::string& problem);
  // A wanted upload cannot be completed. `stored_path`: v1::Upload::stored. The server is told of
  // the newest ones, and again after each Welcome.
  void OnUploadSkipped(const std::string& stored_path);

  // Sets the state of the host. The server is told of a problem when it changes, and, after the
  // first problem, again after each Welcome. Heartbeats carry the numbers.
  void OnHealth(const HostHealth& health);

  // Tears all gangs down, says goodbye to the server if it is connected, and ends.
  void Stop(AgentExit exit);

  // Asks the server to let the gangs save at their next report. Calls Stop() when all gangs have
  // exited and their checkpoints are no longer needed from this host, or after `grace`. Without a
  // connection, it stops immediately.
  void Leave(std::chrono::milliseconds grace, const Now& now);

  // Performs what is due and writes pending messages. Returns when to call it next if no event
  // comes earlier; kNever if nothing is scheduled.
  gang::BootClock::time_point Step(const Now& now);

  // No gang and no connection is left. No more events may be passed in.
  bool done() const { return done_; }
  const AgentExit& exit() const { return *exit_; }  // REQUIRES: done()

  // Whether facts accumulate faster than the server takes them. While it is true, the caller should
  // not read from gangs, so that reports wait in the workers' channels.
  bool is_full() const { return outbox_.is_full(); }

  // Whether the server has ever welcomed this executor.
  bool has_joined() const { return has_joined_; }

  // The end of the lease, until which the server does not reassign its gangs; kNever without a
  // lease.
  gang::BootClock::time_point lease_until() const { return lease_until_; }

 private:
  enum class Connection { kNone, kOpening, kWelcomed, kClosing };

  void OnWelcome(const v1::Welcome& welcome);
  void OnRefusal(const v1::Refusal& refusal);
  void OnDesired(v1::Desired desired, const Now& now);
  void RememberLogPosition(const v1::Desired& desired);
  void RememberIfWaiting(const gang::Fact& fact);
  void ResendWaitingReports();
  void OnAck(const v1::Ack& ack, const Now& now);
  void OnLogRequest(const v1::LogRequest& request);

  void Connect(const Now& now);
  void Disconnect();
  void RenewLease(gang::BootClock::time_point sent);
  void CheckLease(const Now& now);
  void DropDeadlineIfAllEnded();
  void CheckGiveUp(const Now& now);
  gang::BootClock::time_point GiveUpTime() const;
  void CancelAll(gang::CancelReason reason);
  void Remove();
  void Reconcile(const Now& now);
  bool Perform(const Reconciler::Actions& actions, const Now& now);
  void ResendIfDue(const Now& now);
  void ReadNextLog();
  void Pump(const Now& now);
  std::optional<v1::FromExecutor> NextMessage(const Now& now);
  void StopOnceGangsLeft(const Now& now);
  void FinishStopping(const Now& now);
  gang::BootClock::time_point NextDeadline() const;

  v1::Hello hello_;                      // without the sweeps
  std::map<uint64_t, uint64_t> sweeps_;  // sweeps that may have files here -> identity
  const gang::Folders folders_;
  ServerLink& link_;
  Gangs& gangs_;
  Files& files_;
  const std::chrono::milliseconds give_up_;
  const gang::BootClock::time_point ends_;
  Outbox outbox_;
  // The newest report of each gang whose rank 0 waits for its verdict.
  std::map<gang::AttemptId, v1::Fact> waiting_reports_;
  Reconciler reconciler_;
  Removals removals_;  // wanted by the server
  Backoff backoff_;

  Connection connection_ = Connection::kNone;
  bool writing_ = false;
  bool said_goodbye_ = false;
  bool said_it_stays_ = false;  // v1::Goodbye::stays
  bool released_ = false;
  bool server_reachable_ = true;  // false after an outage was logged
  bool has_joined_ = false;
  HostHealth health_;
  // The problem that the server knows; nullopt: unknown, so it must be sent.
  std::optional<std::string> told_problem_ = "";
  bool was_unhealthy_ = false;
  std::string storage_problem_;
  std::string told_storage_problem_;         // the server knows it
  std::deque<std::string> skipped_uploads_;  // v1::Upload::stored
  bool is_skip_untold_ = false;              // the server does not know all of them
  std::vector<v1::Inventory> inventories_;   // waiting for the Desired of this connection
  std::deque<v1::LogRequest> log_requests_;
  bool reading_log_ = false;
  bool drop_log_chunk_ = false;            // for the log chunk that is being read
  std::optional<v1::LogChunk> log_chunk_;  // was read and must be sent

  std::chrono::milliseconds lease_ttl_{0};
  std::chrono::milliseconds heartbeat_{0};
  gang::BootClock::time_point retry_at_ = gang::BootClock::time_point::min();
  gang::BootClock::time_point welcome_by_ = kNever;
  gang::BootClock::time_point heartbeat_at_ = kNever;
  gang::BootClock::time_point resend_at_ = kNever;
  gang::BootClock::time_point hello_sent_;
  gang::BootClock::time_point lease_until_ = kNever;
  std::set<gang::AttemptId> lost_;  // gangs that ran when the lease expired and still exist
  // Time of the last message from the server, or of the first Step().
  std::optional<gang::BootClock::time_point> heard_at_;

  // Set by Leave(): until then gangs may exit themselves.
  gang::BootClock::time_point leave_by_ = kNever;
  std::optional<AgentExit> exit_;  // if set, the machine is stopping
  gang::BootClock::time_point farewell_until_ = kNever;
  bool done_ = false;
};

}  // namespace attune::agent
