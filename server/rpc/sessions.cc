#include "server/rpc/sessions.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/message_limits.h"
#include "base/result.h"
#include "logging/log.h"
#include "server/rpc/hello.h"

namespace attune::server {
namespace {

constexpr int kHeartbeatsPerLease = 4;
constexpr int64_t kMillisecondUs = 1'000;

}  // namespace

Sessions::Sessions(Submissions& submissions, Options options)
    : submissions_(submissions), options_(std::move(options)) {}

Sessions::Session* Sessions::Find(SessionId id) {
  const auto found = sessions_.find(id);
  return found == sessions_.end() || found->second.closing ? nullptr : &found->second;
}

Sessions::Session* Sessions::FindGreeted(SessionId id) {
  Session* session = Find(id);
  if (session == nullptr || session->stage != Stage::kBeforeHello) return session;
  Close(*session);
  return nullptr;
}

// ---- Begin and end of a connection ----------------------------------------------------------

SessionId Sessions::OnOpened(ExecutorLink& link, Time now) {
  const SessionId id = ++last_session_;
  sessions_[id].link = &link;
  sessions_[id].opened = now;
  return id;
}

void Sessions::OnHello(SessionId id, const v1::Hello& hello, Time now) {
  now_ = now;
  Session* session = Find(id);
  if (session == nullptr) return;
  if (session->stage != Stage::kBeforeHello) return ReadNextOrHold(id, *session);
  if (const auto fault = FindFault(hello)) return Refuse(*session, fault->code(), fault->message());
  session->hello = hello;
  NoteMessage(*session, now);
  Executor& executor = executors_[hello.name()];
  executor.started_us = std::max(executor.started_us, hello.started_us());
  ReadNextOrHold(id, *session);
  if (started_ && !awaits_identity_) return Join(id);
  session->stage = Stage::kWaiting;
  TakeOver(id);
}

void Sessions::OnTooManyConnections(SessionId id) {
  if (Session* session = Find(id))
    Refuse(*session, v1::Refusal::BUSY,
           "the server has as many connections of executors as it may keep open; try again later, "
           "or raise the limit of open files (ulimit -n) of the server");
}

std::optional<v1::Refusal> Sessions::FindFault(const v1::Hello& hello) const {
  if (auto fault = CheckHello(hello, options_.may_join(hello.token()))) return fault;
  // Checks only while the later process is heard from: a clock that was set back must not lock an
  // executor out for ever.
  const auto known = executors_.find(hello.name());
  if (known != executors_.end() && hello.started_us() > 0 &&
      hello.started_us() < known->second.started_us && !IsSilent(known->second))
    return MakeRefusal(v1::Refusal::SUPERSEDED,
                       "a process that started later is already executor " + hello.name());
  return std::nullopt;
}

void Sessions::Join(SessionId id) {
  Session& session = sessions_.at(id);
  session.stage = Stage::kJoining;
  const v1::Hello& hello = session.hello;
  if (identifying_)
    return Refuse(session, v1::Refusal::BUSY,
                  "the log is about to get another identity; try again in a moment");
  if (std::string reason = FindMissingEvents(hello); !reason.empty())
    return IdentifyLog(id, std::move(reason));
  const Executor& executor = executors_[hello.name()];
  if (!executor.lost && !executor.losing && executor.instance == hello.instance())
    return OnJoined(id, std::span<const Event>());
  submissions_.Submit(ToJoinCommand(hello),
                      [this, id](const auto& joined) { OnJoined(id, joined); });
}

void Sessions::OnJoined(SessionId id, const Result<std::span<const Event>>& joined) {
  if (joined.ok()) {
    for (const Event& event : *joined) {
      if (const auto* fact = std::get_if<ExecutorJoined>(&event.fact)) Apply(*fact);
    }
  }
  Session* session = Find(id);
  if (session == nullptr) return;
  if (!joined.ok()) return Refuse(*session, v1::Refusal::BUSY, joined.error().message);
  session->stage = Stage::kJoined;
  session->incarnation = executors_[session->hello.name()].incarnation;
  TakeOver(id);
  logging::Debug("executor {} joined", session->hello.name());
  if (session->problem) SubmitHealth(id, *session);
  SubmitLeave(id, *session);
  submissions_.Post([this, id](const Brain& brain) {
    Session* present = Find(id);
    if (present == nullptr) return;
    present->lost_sweeps = LostSweeps(brain.state(), present->hello);
    const bool is_new_to_it = present->hello.identity() != IdentityOf(brain.state()).value;
    if (is_new_to_it && brain.state().parts.size() > 1) SendInventory(*present, brain);
    SendDesired(*present, brain);
  });
  submissions_.CheckForStarts();
  AllowStartsIfReconnected();
}

void Sessions::TakeOver(SessionId id) {
  Session& session = sessions_.at(id);
  Welcome(session);
  Executor& executor = executors_[session.hello.name()];
  Session* previous = Find(std::exchange(executor.session, id));
  if (previous == nullptr || previous == &session) return;
  if (previous->hello.instance() == session.hello.instance()) return Close(*previous);
  Refuse(*previous, v1::Refusal::SUPERSEDED,
         "another process has joined as executor " + session.hello.name());
}

void Sessions::Welcome(Session& session) {
  if (std::exchange(session.welcomed, true)) return;
  v1::ToExecutor message;
  v1::Welcome& welcome = *message.mutable_welcome();
  welcome.set_lease_ttl_ms(static_cast<uint32_t>(options_.lease_ttl_us / kMillisecondUs));
  welcome.set_heartbeat_ms(
      static_cast<uint32_t>(options_.lease_ttl_us / kHeartbeatsPerLease / kMillisecondUs));
  session.link->Send(std::move(message));
}

void Sessions::Refuse(Session& session, v1::Refusal::Code code, const std::string& message) {
  v1::ToExecutor refusal;
  *refusal.mutable_refusal() = MakeRefusal(code, message);
  session.link->Send(std::move(refusal));
  Close(session);
}

// Further messages from this session are ignored; it is no longer its executor's connection.
void Sessions::Close(Session& session) {
  session.closing = true;
  session.link->Close();
}

std::string Sessions::OnClosed(SessionId id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return "";
  std::string left;
  const auto executor = executors_.find(found->second.hello.name());
  if (executor != executors_.end() && executor->second.session == id) {
    executor->second.session = 0;
    left = executor->first;
    logging::Debug("executor {} disconnected", executor->first);
  }
  held_.erase(id);
  pending_ -= found->second.pending;
  sessions_.erase(found);
  return left;
}

// ---- Messages of executors ------------------------------------------------------------------

void Sessions::OnFacts(SessionId id, FactBatch batch, Time now) {
  Session* session = FindGreeted(id);
  if (session == nullptr) return;
  NoteMessage(*session, now);
  for (Command& command : batch.commands) SetSender(session->hello, command);
  if (!started_) session->dropped_facts = true;
  // Facts that follow dropped ones must not be acknowledged.
  if (session->dropped_facts) {
    if (started_) RecordEnds(std::move(batch.commands));
    return ReadNextOrHold(id, *session);
  }
  session->pending += batch.bytes;
  pending_ += batch.bytes;
  session->waiting.push_back(std::move(batch));
  ReadNextOrHold(id, *session);
  if (!session->storing && !session->waiting.empty()) Store(id, *session);
}

// Stores one batch of a session at a time. If a batch were refused and a later one stored, the
// facts of the refused batch would be out of date when they are sent again. REQUIRES: a batch
// waits.
void Sessions::Store(SessionId id, Session& session) {
  FactBatch batch = std::move(session.waiting.front());
  session.waiting.pop_front();
  if (!session.waiting.empty()) batch.commands.reserve(kBatchCommands);
  while (!session.waiting.empty() && batch.commands.size() < kBatchCommands) {
    FactBatch next = std::move(session.waiting.front());
    session.waiting.pop_front();
    std::ranges::move(next.commands, std::back_inserter(batch.commands));
    batch.last = next.last;
    batch.bytes += next.bytes;
  }
  session.storing = true;
  submissions_.Record(std::move(batch.commands),
                      [this, id, last = batch.last, bytes = batch.bytes](const Status& stored) {
                        OnStored(id, last, bytes, stored);
                      });
}

void Sessions::OnStored(SessionId id, uint64_t last, size_t bytes, const Status& stored) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  Session& session = found->second;
  session.storing = false;
  Release(session, bytes);
  if (!stored.ok()) {
    session.dropped_facts = true;
    for (const FactBatch& dropped : std::exchange(session.waiting, {}))
      Release(session, dropped.bytes);
  } else if (!session.closing) {
    session.acknowledged = std::max(session.acknowledged, last);
    Acknowledge(session, 0);
    if (!session.waiting.empty()) Store(id, session);
  }
  for (const SessionId held : std::set(held_)) {
    if (Session* next = Find(held)) ReadNextOrHold(held, *next);
  }
}

// The ends of killed gangs free their slots even while the disk is full. The executor must send the
// other facts again.
void Sessions::RecordEnds(std::vector<Command> facts) {
  std::erase_if(facts, [](const Command& command) {
    const auto* fact = std::get_if<RecordFact>(&command);
    return fact == nullptr || !std::holds_alternative<AttemptEnded>(fact->fact);
  });
  if (!facts.empty()) submissions_.RecordEnds(std::move(facts));
}

void Sessions::Release(Session& session, size_t bytes) {
  session.pending -= bytes;
  pending_ -= bytes;
}

void Sessions::OnHeartbeat(SessionId id, const v1::Heartbeat& heartbeat, Time now) {
  Session* session = FindGreeted(id);
  if (session == nullptr) return;
  NoteMessage(*session, now);
  executors_[session->hello.name()].pulse = {
      .disk_free_bytes = static_cast<int64_t>(heartbeat.disk_free_bytes()),
      .memory_free_bytes = static_cast<int64_t>(heartbeat.memory_free_bytes())};
  Acknowledge(*session, heartbeat.time_us());
  ReadNextOrHold(id, *session);
}

void Sessions::OnGoodbye(SessionId id, const v1::Goodbye& goodbye) {
  Session* session = FindGreeted(id);
  if (session == nullptr) return;
  session->leaving = true;
  if (goodbye.saves()) session->saves = true;
  if (session->stage == Stage::kJoined) SubmitLeave(id, *session);
  if (goodbye.stays()) {
    session->stays = true;
    submissions_.Post([this, id](const Brain& brain) {
      if (Session* staying = Find(id)) ReleaseIfUnneeded(*staying, brain);
    });
  }
  ReadNextOrHold(id, *session);
}

// If the store refuses the command, OnState submits it again once the store can write.
void Sessions::SubmitLeave(SessionId id, Session& session) {
  if (!std::exchange(session.saves, false)) return;
  submissions_.Submit(LeaveExecutor{session.hello.name(), session.incarnation},
                      [this, id](const auto& told) {
                        Session* leaver = told.ok() ? nullptr : Find(id);
                        if (leaver != nullptr) leaver->saves = true;
                      });
}

void Sessions::OnHealth(SessionId id, const v1::Health& health) {
  Session* session = FindGreeted(id);
  if (session == nullptr) return;
  session->problem = CutEnd(health.problem(), kProblemBytesMax);
  if (session->stage == Stage::kJoined) SubmitHealth(id, *session);
  ReadNextOrHold(id, *session);
}

// If the store refuses the command, the executor must reconnect and send its health again with the
// dropped facts.
void Sessions::SubmitHealth(SessionId id, const Session& session) {
  submissions_.Submit(ReportHealth{session.hello.name(), session.incarnation, *session.problem},
                      [this, id](const auto& said) {
                        Session* teller = said.ok() ? nullptr : Find(id);
                        if (teller != nullptr) teller->dropped_facts = true;
                      });
}

void Sessions::ReleaseIfUnneeded(Session& session, const Brain& brain) {
  const v1::Hello& hello = session.hello;
  if (!session.stays || brain.IsNeeded(hello.name(), hello.temporary_data()) ||
      IsUploading(session))
    return;
  session.stays = false;
  v1::ToExecutor message;
  message.mutable_released();
  session.link->Send(std::move(message));
}

std::string Sessions::OnOtherMessage(SessionId id) {
  Session* session = FindGreeted(id);
  if (session == nullptr) return "";
  const std::string executor = session->hello.name();
  ReadNextOrHold(id, *session);
  return executor;
}

void Sessions::NoteMessage(const Session& session, Time now) {
  now_ = now;
  executors_[session.hello.name()].heard = now;
}

bool Sessions::IsSilent(const Executor& executor) const {
  return now_.us - executor.heard.us > options_.patience_us;
}

void Sessions::Acknowledge(Session& session, int64_t heartbeat_us) {
  v1::ToExecutor message;
  message.mutable_ack()->set_seq(session.acknowledged);
  message.mutable_ack()->set_heartbeat_us(heartbeat_us);
  session.link->Send(std::move(message));
}

bool Sessions::MayRead(const Session& session) const {
  return session.pending == 0 ||
         (session.pending < kSessionBytesMax && pending_ < kSessionsBytesMax);
}

void Sessions::ReadNextOrHold(SessionId id, Session& session) {
  if (!MayRead(session)) {
    held_.insert(id);
    return;
  }
  held_.erase(id);
  session.link->ReadNext();
}

// ---- Durable events -------------------------------------------------------------------------

void Sessions::OnStarted(const Brain& brain, Time now) {
  now_ = now;
  for (const auto& [name, executor] : brain.state().executors) {
    if (executor.lost) continue;
    Executor& known = executors_[name];
    known.instance = executor.instance;
    known.incarnation = executor.incarnation;
    known.lost = false;
  }
  for (auto& [name, executor] : executors_) executor.heard = now;
  identity_ = IdentityOf(brain.state());
  last_sweep_ = brain.state().last_sweep;
  start_seq_ = brain.state().last_seq;
  affected_.Load(brain.state());
  started_ = true;
  settle_by_ = Time{now.us + options_.patience_us};
  restored_ = WasRestored(brain.state(), now);
  awaits_identity_ = options_.awaits_identity();
  if (!awaits_identity_) JoinWaiting();
  CloseAfterDroppedFacts(
      "the server has read its log: connect again and send all unacknowledged facts");
  AllowStartsIfReconnected();
}

void Sessions::JoinWaiting() {
  std::vector<SessionId> waiting;
  for (const auto& [id, session] : sessions_) {
    if (session.stage == Stage::kWaiting && !session.closing) waiting.push_back(id);
  }
  for (const SessionId id : waiting) Join(id);
}

void Sessions::OnState(const Status& writable) {
  const bool refused = std::exchange(refused_, !writable.ok());
  if (!started_ || !refused || refused_) return;
  for (auto& [id, session] : sessions_) {
    if (session.stage == Stage::kJoined && !session.closing) SubmitLeave(id, session);
  }
  CloseAfterDroppedFacts(
      "the server can write again; connect again and send all unacknowledged facts");
}

void Sessions::CloseAfterDroppedFacts(const std::string& why) {
  for (auto& [id, session] : sessions_) {
    if (session.dropped_facts && !session.closing) Refuse(session, v1::Refusal::BUSY, why);
  }
}

void Sessions::Apply(const ExecutorJoined& joined) {
  const bool is_new = !executors_.contains(joined.name);
  Executor& executor = executors_[joined.name];
  if (is_new) executor.heard = now_;
  executor.instance = joined.instance;
  executor.incarnation = joined.incarnation;
  executor.lost = executor.losing = false;
}

void Sessions::Apply(const ExecutorLost& lost) {
  const auto found = executors_.find(lost.name);
  if (found == executors_.end() || found->second.incarnation != lost.incarnation) return;
  Executor& executor = found->second;
  executor.lost = true;
  executor.losing = false;
  Session* session = Find(executor.session);
  if (session != nullptr && session->stage == Stage::kJoined)
    Refuse(*session, v1::Refusal::BUSY,
           "the server has declared the executor lost: it has to join again");
}

void Sessions::OnDurable(std::span<const Event> events, const Brain& brain) {
  for (const Event& event : events) {
    if (const auto* identified = std::get_if<LogIdentified>(&event.fact)) Apply(*identified);
    if (const auto* joined = std::get_if<ExecutorJoined>(&event.fact)) Apply(*joined);
    if (const auto* lost = std::get_if<ExecutorLost>(&event.fact)) Apply(*lost);
    if (const auto* forgotten = std::get_if<ExecutorForgotten>(&event.fact)) {
      const auto found = executors_.find(forgotten->name);
      if (found != executors_.end() && found->second.session == 0) executors_.erase(found);
    }
  }
  last_sweep_ = brain.state().last_sweep;
  const bool is_restored = std::ranges::any_of(events, [](const Event& event) {
    const auto* identified = std::get_if<LogIdentified>(&event.fact);
    return identified != nullptr && !identified->reason.empty();
  });
  const AffectedExecutors::Executors affected = affected_.Find(events);
  for (auto& [id, session] : sessions_) {
    const bool concerned = affected.all || (affected.removals && session.removals);
    if (!concerned || session.revision == 0 || session.closing) continue;
    if (is_restored) SendInventory(session, brain);
    SendDesired(session, brain);
  }
  for (const std::string& name : affected.names) {
    const auto executor = executors_.find(name);
    if (executor == executors_.end()) continue;
    Session* session = Find(executor->second.session);
    if (session != nullptr && session->revision > 0) SendDesired(*session, brain);
  }
  for (auto& [id, session] : sessions_) {
    if (!session.closing) ReleaseIfUnneeded(session, brain);
  }
  AllowStartsIfReconnected();
}

void Sessions::SendDesired(Session& session, const Brain& brain) {
  v1::ToExecutor message;
  v1::Desired& desired = *message.mutable_desired();
  desired = ToDesired(brain.state(), session.hello.name(),
                      {.server_of = [this](const std::string& name) { return PieceServerOf(name); },
                       .value_of = options_.value_of,
                       .store_variables = options_.store_variables});
  for (const SweepFiles& lost : session.lost_sweeps) Add(lost, *desired.mutable_lost_sweeps());
  std::string serialised = desired.SerializeAsString();
  if (session.revision > 0 && serialised == session.desired) return;
  session.desired = std::move(serialised);
  session.removals = desired.removals_size() > 0 || desired.deleted_sweeps_size() > 0;
  desired.set_revision(++session.revision);
  desired.set_log_seq(brain.state().last_seq.value);
  desired.set_server_run(options_.run);
  session.link->Send(std::move(message));
  if (session.revision == 1) SendUploads(session);
}

std::optional<v1::PieceServer> Sessions::PieceServerOf(const std::string& executor) const {
  if (!Connected(executor)) return std::nullopt;
  const v1::Hello& hello = sessions_.at(executors_.at(executor).session).hello;
  if (hello.pieces_port() == 0) return std::nullopt;
  v1::PieceServer server;
  server.set_executor(executor);
  server.set_address(hello.address());
  server.set_port(hello.pieces_port());
  server.set_key(hello.pieces_key());
  return server;
}

}  // namespace attune::server
