#include "executor/agent/machine.h"

#include <algorithm>
#include <ranges>
#include <utility>
#include <variant>

#include "base/result.h"
#include "base/utf8.h"
#include "executor/agent/messages.h"
#include "logging/log.h"

namespace attune::agent {

using std::chrono::milliseconds;

namespace {

constexpr int kRetriesPerLease = 8;  // in the rest of a lease

gang::Fact LostWithLease(const gang::Fact& fact) {
  const std::string message =
      "its executor was stopped or heard nothing from the server for longer than its lease";
  const gang::Failure failure{.kind = gang::FailureKind::kLease, .rank = -1, .message = message};
  return {fact.attempt, fact.time_us, gang::Ended{gang::Outcome::kFailed, failure}};
}

}  // namespace

Machine::Machine(v1::Hello hello, gang::Folders folders, uint64_t seed, ServerLink& link,
                 Gangs& gangs, Files& files, milliseconds give_up, gang::BootClock::time_point ends)
    : hello_(std::move(hello)),
      folders_(std::move(folders)),
      link_(link),
      gangs_(gangs),
      files_(files),
      give_up_(give_up),
      ends_(ends),
      backoff_(seed) {
  for (const SweepFiles& kept : FromProto(hello_.sweeps()))
    sweeps_.emplace(kept.sweep, kept.identity);
  hello_.clear_sweeps();
}

gang::BootClock::time_point Machine::Step(const Now& now) {
  CheckLease(now);
  CheckGiveUp(now);
  if (connection_ == Connection::kNone && !exit_ && now.boot >= retry_at_) Connect(now);
  if (now.boot >= welcome_by_) {
    logging::Warn("the server did not welcome this executor within {} ms", kWelcomeTimeout.count());
    Disconnect();
  }
  ResendIfDue(now);
  StopOnceGangsLeft(now);
  Pump(now);
  FinishStopping(now);
  return NextDeadline();
}

gang::BootClock::time_point Machine::NextDeadline() const {
  gang::BootClock::time_point next = std::min({welcome_by_, lease_until_, GiveUpTime()});
  if (!exit_) next = std::min(next, leave_by_);
  if (connection_ == Connection::kNone && !exit_) next = std::min(next, retry_at_);
  if (connection_ == Connection::kWelcomed && !writing_) {
    next = std::min({next, heartbeat_at_, resend_at_});
  }
  if (connection_ == Connection::kWelcomed) next = std::min(next, farewell_until_);
  return next;
}

void Machine::Stop(AgentExit exit) {
  if (exit_) return;
  exit_ = std::move(exit);
  // Another process has taken this one's name and slots.
  const bool superseded = exit_->reason == AgentExit::Reason::kSuperseded;
  CancelAll(superseded ? gang::CancelReason::kLeaseLost : gang::CancelReason::kLeaving);
}

void Machine::Leave(milliseconds grace, const Now& now) {
  if (exit_ || leave_by_ != kNever) return;
  leave_by_ = now.boot + grace;
  for (const gang::AttemptId& attempt : reconciler_.RunningGangs())
    gangs_.Cancel(attempt, gang::CancelReason::kLeavingSoon);
}

void Machine::StopOnceGangsLeft(const Now& now) {
  if (leave_by_ == kNever || exit_) return;
  const bool left = released_ && !reconciler_.has_live();
  if (now.boot >= leave_by_ || left || connection_ != Connection::kWelcomed) Stop({});
}

void Machine::FinishStopping(const Now& now) {
  if (!exit_ || reconciler_.has_live()) return;
  if (farewell_until_ == kNever) farewell_until_ = now.boot + kFarewellTimeout;
  const bool all_said = said_goodbye_ && !writing_ && outbox_.empty();
  if (connection_ == Connection::kWelcomed && !all_said && now.boot < farewell_until_) return;
  Disconnect();
  done_ = connection_ == Connection::kNone;
}

// ---- the connection -------------------------------------------------------------------------

void Machine::Connect(const Now& now) {
  connection_ = Connection::kOpening;
  welcome_by_ = now.boot + kWelcomeTimeout;
  hello_sent_ = now.boot;
  writing_ = true;
  link_.Connect();
  v1::FromExecutor message;
  *message.mutable_hello() = hello_;
  for (const auto& [sweep, identity] :
       sweeps_ | std::views::reverse | std::views::take(kHelloSweepsMax))
    AddSweepFiles({sweep, identity}, *message.mutable_hello()->mutable_sweeps());
  if (ends_ != kNever) {
    const auto left = std::chrono::duration_cast<milliseconds>(ends_ - now.boot);
    message.mutable_hello()->set_time_left_ms(std::max<int64_t>(left.count(), 1));
  }
  link_.Write(std::move(message));
}

void Machine::Disconnect() {
  welcome_by_ = kNever;
  if (connection_ == Connection::kNone || connection_ == Connection::kClosing) return;
  connection_ = Connection::kClosing;
  link_.Close();
}

void Machine::OnBroken() { Disconnect(); }

void Machine::OnClosed(const std::string& reason, const Now& now) {
  connection_ = Connection::kNone;
  writing_ = false;
  log_requests_.clear();
  log_chunk_.reset();
  inventories_.clear();
  drop_log_chunk_ = reading_log_;
  milliseconds pause = backoff_.Next();
  if (lease_until_ != kNever && lease_until_ > now.boot) {
    // A server that comes back before the lease ends must still find its gangs.
    const auto left = std::chrono::duration_cast<milliseconds>(lease_until_ - now.boot);
    pause = std::min(pause, std::max(left / kRetriesPerLease, Backoff::kFirst));
  }
  retry_at_ = now.boot + pause;
  if (server_reachable_ && !exit_) {
    logging::Warn("no connection to the server ({}); trying again", reason);
  }
  server_reachable_ = false;
}

void Machine::OnMessage(v1::ToExecutor message, const Now& now) {
  CheckLease(now);
  if (connection_ == Connection::kClosing) return;
  heard_at_ = now.boot;
  if (message.has_welcome()) OnWelcome(message.welcome());
  if (message.has_refusal()) return OnRefusal(message.refusal());
  if (connection_ != Connection::kWelcomed) return;
  if (message.has_desired()) OnDesired(std::move(*message.mutable_desired()), now);
  if (message.has_ack()) OnAck(message.ack(), now);
  if (message.has_log_request()) OnLogRequest(message.log_request());
  released_ |= message.has_released();
  if (message.has_inventory()) inventories_.push_back(std::move(*message.mutable_inventory()));
  if (message.has_checkpoint_request()) files_.SendCheckpoint(message.checkpoint_request());
  if (message.has_uploads()) files_.Upload(message.uploads());
}

void Machine::OnWelcome(const v1::Welcome& welcome) {
  if (!server_reachable_) logging::Info("connected to the server");
  server_reachable_ = true;
  has_joined_ = true;
  connection_ = Connection::kWelcomed;
  welcome_by_ = kNever;
  lease_ttl_ = milliseconds(welcome.lease_ttl_ms());
  removals_ = {};
  heartbeat_ = std::max(milliseconds(welcome.heartbeat_ms()), kHeartbeatMin);
  // In the past if the Hello was delayed; then the heartbeat is sent immediately.
  heartbeat_at_ = hello_sent_ + heartbeat_;
  RenewLease(hello_sent_);
  if (was_unhealthy_) told_problem_.reset();
  told_storage_problem_.clear();  // the server begins without one
  is_skip_untold_ = !skipped_uploads_.empty();
  reconciler_.ForgetRevision();
  outbox_.Rewind();
  resend_at_ = kNever;
}

void Machine::OnRefusal(const v1::Refusal& refusal) {
  Disconnect();
  switch (refusal.code()) {
    case v1::Refusal::BAD_TOKEN:
    case v1::Refusal::VERSION:
    case v1::Refusal::BAD_HELLO:
      return Stop({AgentExit::Reason::kRefused, refusal.message()});
    case v1::Refusal::SUPERSEDED:
      return Stop({AgentExit::Reason::kSuperseded, refusal.message()});
    default:
      logging::Warn("the server cannot take this executor now: {}", refusal.message());
  }
}

void Machine::OnDesired(v1::Desired desired, const Now& now) {
  if (exit_) return;
  const bool restored = desired.identity() != hello_.identity() && hello_.identity() != 0;
  RememberLogPosition(desired);
  if (restored) ResendWaitingReports();
  for (const v1::Inventory& inventory : std::exchange(inventories_, {}))
    files_.FindMissing(inventory);
  removals_.checkpoints = desired.removals();
  removals_.sweeps = FromProto(desired.deleted_sweeps());
  removals_.lost_sweeps = FromProto(desired.lost_sweeps());
  reconciler_.SetDesired(std::move(desired));
  Reconcile(now);
  Remove();
}

void Machine::RememberLogPosition(const v1::Desired& desired) {
  hello_.set_identity(desired.identity());
  hello_.set_log_seq(desired.log_seq());
  hello_.set_server_run(desired.server_run());
}

// A restored log may have lost a report that was acknowledged. Without it the server gives no
// verdict, and the gang would wait forever. A log that has the report ignores the repetition.
void Machine::ResendWaitingReports() {
  for (const auto& [attempt, report] : waiting_reports_) outbox_.Add(report);
}

void Machine::RememberIfWaiting(const gang::Fact& fact) {
  if (const auto* report = std::get_if<gang::Report>(&fact.what)) {
    waiting_reports_.erase(fact.attempt);
    if (report->waits) waiting_reports_.emplace(fact.attempt, ToProto(fact));
  }
  if (std::holds_alternative<gang::Ended>(fact.what)) waiting_reports_.erase(fact.attempt);
}

void Machine::OnAck(const v1::Ack& ack, const Now& now) {
  backoff_.Reset();  // not at the Welcome, because a refusal may follow
  if (ack.heartbeat_us() > 0) {
    RenewLease(gang::BootClock::time_point(gang::BootClock::duration(ack.heartbeat_us())));
  }
  const size_t before = outbox_.unacknowledged();
  for (const gang::AttemptId& attempt : outbox_.Acknowledge(ack.seq())) {
    reconciler_.OnEndAcknowledged(attempt);
  }
  if (outbox_.unacknowledged() < before) resend_at_ = now.boot + kResendAfter;
  if (outbox_.unacknowledged() == 0) resend_at_ = kNever;
}

void Machine::OnHealth(const HostHealth& health) {
  if (health.problem != health_.problem) {
    if (health.problem.empty())
      logging::Info("this host is healthy again");
    else
      logging::Warn("no gang can start on this host: {}", health.problem);
  }
  health_ = health;
}

// Resends facts that the server could not take because it was overloaded or its disk was full.
void Machine::ResendIfDue(const Now& now) {
  if (now.boot < resend_at_) return;
  resend_at_ = kNever;
  outbox_.Rewind();
}

void Machine::OnLogRequest(const v1::LogRequest& request) {
  // The client of the oldest request is the most likely to have stopped waiting.
  if (log_requests_.size() == kLogRequestsMax) log_requests_.pop_front();
  log_requests_.push_back(request);
}

void Machine::ReadNextLog() {
  if (reading_log_ || log_chunk_ || log_requests_.empty()) return;
  const v1::LogRequest request = std::move(log_requests_.front());
  log_requests_.pop_front();
  reading_log_ = true;
  files_.ReadLog(request);
}

void Machine::OnLog(v1::LogChunk chunk) {
  reading_log_ = false;
  if (!std::exchange(drop_log_chunk_, false)) log_chunk_ = std::move(chunk);
}

// Writes the next message to the connection. Facts that arrive during a write are sent together in
// the next message.
void Machine::Pump(const Now& now) {
  ReadNextLog();
  if (connection_ != Connection::kWelcomed || writing_) return;
  std::optional<v1::FromExecutor> message = NextMessage(now);
  if (!message) return;
  writing_ = true;
  link_.Write(*std::move(message));
}

std::optional<v1::FromExecutor> Machine::NextMessage(const Now& now) {
  v1::FromExecutor message;
  if ((exit_ || leave_by_ != kNever) && !said_goodbye_) {
    said_goodbye_ = true;
    message.mutable_goodbye()->set_saves(!exit_);
  } else if (leave_by_ != kNever && !exit_ && !said_it_stays_ && !reconciler_.has_live() &&
             outbox_.empty()) {
    said_it_stays_ = true;
    message.mutable_goodbye()->set_stays(true);
  } else if (health_.problem != told_problem_) {
    told_problem_ = health_.problem;
    was_unhealthy_ = true;
    message.mutable_health()->set_problem(ValidUtf8(*told_problem_));
  } else if (storage_problem_ != told_storage_problem_ || is_skip_untold_) {
    told_storage_problem_ = storage_problem_;
    is_skip_untold_ = false;
    message.mutable_storage()->set_problem(storage_problem_);
    for (const std::string& path : skipped_uploads_) message.mutable_storage()->add_skipped(path);
  } else if (now.boot >= heartbeat_at_) {
    heartbeat_at_ = now.boot + heartbeat_;
    v1::Heartbeat& heartbeat = *message.mutable_heartbeat();
    heartbeat.set_time_us(now.boot.time_since_epoch().count());
    heartbeat.set_disk_free_bytes(health_.disk_free_bytes);
    heartbeat.set_memory_free_bytes(health_.memory_free_bytes);
  } else if (log_chunk_) {
    *message.mutable_log_chunk() = *std::exchange(log_chunk_, std::nullopt);
  } else if (outbox_.may_send()) {
    *message.mutable_facts() = outbox_.TakeBatch();
    if (resend_at_ == kNever) resend_at_ = now.boot + kResendAfter;
  } else {
    return std::nullopt;
  }
  return message;
}

// ---- the lease ------------------------------------------------------------------------------

// The lease counts from the time when the acknowledged message was sent, not from now. An executor
// that was stopped for an hour still receives old messages of its server when it continues.
void Machine::RenewLease(gang::BootClock::time_point sent) {
  if (lease_ttl_.count() <= 0) return;
  lease_until_ = sent + lease_ttl_;
  gangs_.SetDeadline(lease_until_ + std::min(lease_ttl_ / 8, kDeadlineMarginMax));
}

void Machine::CheckLease(const Now& now) {
  if (now.boot < lease_until_) return;
  lease_until_ = kNever;
  logging::Error("nothing heard from the server for {} ms: tearing all gangs down",
                 lease_ttl_.count());
  for (const gang::AttemptId& attempt : reconciler_.LiveGangs()) lost_.insert(attempt);
  CancelAll(gang::CancelReason::kLeaseLost);
  DropDeadlineIfAllEnded();
  Disconnect();
}

// The deadline stays until all gangs have ended, because this process may be stopped while it tears
// them down. Then it is removed, so that launchers, which train nothing, survive.
void Machine::DropDeadlineIfAllEnded() {
  if (lease_until_ == kNever && !reconciler_.has_live()) gangs_.SetDeadline(kNever);
}

void Machine::CheckGiveUp(const Now& now) {
  if (!heard_at_) heard_at_ = now.boot;
  if (now.boot < GiveUpTime()) return;
  Stop({AgentExit::Reason::kServerLost,
        "no message from the server for " + std::to_string(give_up_.count() / 1000) + " s"});
}

gang::BootClock::time_point Machine::GiveUpTime() const {
  return give_up_.count() > 0 && heard_at_ && !exit_ ? *heard_at_ + give_up_ : kNever;
}

// ---- gangs ----------------------------------------------------------------------------------

void Machine::CancelAll(gang::CancelReason reason) {
  reconciler_.ForgetDesired();
  std::vector<gang::AttemptId> gangs = reconciler_.CancelAll();
  // Without a lease, gangs that are exiting have no time left either.
  if (reason == gang::CancelReason::kLeaseLost) gangs = reconciler_.LiveGangs();
  for (const gang::AttemptId& attempt : gangs) gangs_.Cancel(attempt, reason);
}

void Machine::OnFact(const gang::Fact& fact, const Now& now) {
  CheckLease(now);
  const auto* ended = std::get_if<gang::Ended>(&fact.what);
  // The guard may have killed the ranks, or they seem to have stalled because this process was
  // stopped. Either way the failure says nothing about the trial.
  const bool lost = ended && lost_.erase(fact.attempt) > 0 && ended->failure &&
                    ended->failure->kind != gang::FailureKind::kLease;
  if (ended && ended->failure && ended->failure->missing_checkpoint)
    OnCheckpointGone(ToProto(*ended->failure->missing_checkpoint), now);
  outbox_.Add(ToProto(lost ? LostWithLease(fact) : fact));
  RememberIfWaiting(fact);
  if (!ended) return;
  reconciler_.OnEnded(fact.attempt);
  DropDeadlineIfAllEnded();
  if (exit_) return;
  Reconcile(now);  // another gang may have waited for its GPUs
  if (!removals_.sweeps.empty() || !removals_.lost_sweeps.empty()) Remove();
}

// Skips sweeps with a live gang, which still writes into its folders. A lost sweep is set aside
// when a gang of the same sweep number starts.
void Machine::Remove() {
  Removals removals = removals_;
  for (const gang::AttemptId& attempt : reconciler_.LiveGangs()) {
    const auto is_of_gang = [&](const SweepFiles& files) { return files.sweep == attempt.sweep; };
    std::erase_if(removals.sweeps, is_of_gang);
    std::erase_if(removals.lost_sweeps, is_of_gang);
  }
  files_.Remove(removals);
}

// Repeats if a gang could not be started, because another gang may have waited for its GPUs.
void Machine::Reconcile(const Now& now) {
  while (!Perform(reconciler_.Reconcile(), now)) {
  }
}

// Whether all gangs that should start were started.
bool Machine::Perform(const Reconciler::Actions& actions, const Now& now) {
  std::vector<gang::Fact> failed_starts;
  for (const gang::AttemptId& attempt : actions.cancel) {
    gangs_.Cancel(attempt, gang::CancelReason::kUnwanted);
  }
  for (const gang::AttemptId& attempt : actions.abort)
    gangs_.Cancel(attempt, gang::CancelReason::kFailedElsewhere);
  // Saved before a gang writes files, so that the next process knows the log position they belong
  // to.
  if (!actions.start.empty())
    files_.SaveLogPosition({hello_.identity(), hello_.log_seq(), hello_.server_run()});
  for (const v1::Assignment& assignment : actions.start) {
    Result<gang::GangSpec> spec = ToSpec(assignment, folders_);
    if (spec.ok()) {
      sweeps_[spec.value().attempt.sweep] = spec.value().identity;
      gangs_.Run(std::move(spec.value()));
      continue;
    }
    const gang::Failure failure{.kind = gang::FailureKind::kStart, .message = spec.error().message};
    failed_starts.push_back({FromProto(assignment.attempt()), now.wall_us,
                             gang::Ended{gang::Outcome::kFailed, failure}});
  }
  for (const auto& [attempt, verdict] : actions.set_verdict) {
    gangs_.SetVerdict(attempt, verdict);
    const auto waiting = waiting_reports_.find(attempt);
    if (waiting != waiting_reports_.end() && waiting->second.report().step() <= verdict.step)
      waiting_reports_.erase(waiting);
  }
  for (const gang::AttemptId& attempt : actions.yield) gangs_.Yield(attempt);
  for (const gang::AttemptId& attempt : actions.peers_finished) gangs_.OnPeersFinished(attempt);
  for (const auto& [attempt, rank_zero] : actions.set_rendezvous)
    gangs_.SetRendezvous(attempt, rank_zero);
  for (const gang::AttemptId& attempt : actions.disown) {
    outbox_.Add(ToProto({attempt, now.wall_us, gang::Ended{gang::Outcome::kCancelled, {}}}));
  }
  for (const gang::Fact& fact : failed_starts) {
    outbox_.Add(ToProto(fact));
    reconciler_.OnEnded(fact.attempt);
  }
  return failed_starts.empty();
}

}  // namespace attune::agent
