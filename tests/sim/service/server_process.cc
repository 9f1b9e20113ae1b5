#include "tests/sim/service/server_process.h"

#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "server/rpc/convert.h"
#include "server/rpc/desired.h"

namespace attune::sim {

class ServerProcess::Link final : public server::ExecutorLink {
 public:
  Link(ServerProcess& process, StreamId stream)
      : process_(process),
        stream_(stream),
        id_(process.sessions_.OnOpened(*this, process.context_.timeline.now())) {}

  void Send(v1::ToExecutor message) override {
    if (message.has_desired()) ApplyVariant(*message.mutable_desired());
    process_.context_.network.Send(stream_, std::move(message));
  }
  void Close() override { process_.context_.network.CloseByServer(stream_); }
  void ReadNext() override {}

  void Refuse() {
    v1::ToExecutor message;
    message.mutable_refusal()->set_code(v1::Refusal::BUSY);
    Send(std::move(message));
    Close();
  }
  void Acknowledge(uint64_t seq) {
    v1::ToExecutor message;
    message.mutable_ack()->set_seq(seq);
    Send(std::move(message));
  }

  server::SessionId id() const { return id_; }
  std::string executor;

 private:
  void ApplyVariant(v1::Desired& desired) const {
    if (process_.context_.variant == Variant::kForgetsRemovals) desired.clear_removals();
    if (process_.context_.variant == Variant::kForgetsDeletedSweeps) desired.clear_deleted_sweeps();
    if (process_.context_.variant == Variant::kResumesTwice) AddAttemptsOfOtherExecutors(desired);
  }

  void AddAttemptsOfOtherExecutors(v1::Desired& desired) const {
    const State& state = *process_.state();
    for (const auto& [id, sweep] : state.sweeps) {
      for (const TrialNumber number : sweep.live) {
        const Trial* trial = sweep.Find(number);
        if (!trial->live->resume || trial->checkpoints.empty() || !ShouldRun(*trial)) continue;
        const std::string& current = trial->live->ranks.front().executor;
        if (trial->checkpoints.back().executor != executor || current == executor) continue;
        const v1::Desired orders = server::ToDesired(state, current);
        for (const v1::Assignment& assignment : orders.assignments()) {
          if (assignment.attempt().epoch() == trial->live->epoch.value)
            *desired.add_assignments() = assignment;
        }
      }
    }
  }

  ServerProcess& process_;
  const StreamId stream_;
  const server::SessionId id_;
};

ServerProcess::ServerProcess(Context context)
    : context_(std::move(context)),
      sessions_(*this,
                {.may_join = [](const std::string&) { return true; },
                 .new_identity = context_.new_identity,
                 .awaits_identity = [this] { return log_keeper_ && log_keeper_->AwaitsIdentity(); },
                 .run = context_.run,
                 .lease_ttl_us = kLeaseUs,
                 .patience_us =
                     context_.variant == Variant::kGivesAwayEarly ? kLeaseUs / 2 : kPatienceUs}),
      proposal_runner_(*this, context_.think),
      machine_({.make_decider = [this]() -> std::unique_ptr<server::Decider> {
                  context_.inputs.clear();  // the calls of a dropped decider had no effect
                  const auto reaches = [this](const std::string& name) { return Reaches(name); };
                  return std::make_unique<RecordingDecider>(MakeDecider(context_.variant, reaches),
                                                            reaches, context_.inputs);
                },
                .store = &context_.store,
                .snapshot_events = context_.snapshot_events}) {
  if (context_.marks != nullptr) {
    server::Submissions& submissions = *this;
    log_keeper_.emplace(submissions, *context_.marks, context_.new_identity);
    machine_.Subscribe(&*log_keeper_);
  }
  machine_.Subscribe(this);
  machine_.Subscribe(&proposal_runner_);
}

ServerProcess::~ServerProcess() = default;

void ServerProcess::Start(Time clock) {
  const Status started = machine_.Start(clock, {});
  ATTUNE_CHECK(started.ok());
}

void ServerProcess::Step(Time clock) {
  context_.inputs.clear();
  const Status stepped = machine_.Step(queue_.TakeBatch(), clock);
  ATTUNE_CHECK(stepped.ok());
  context_.store.Flush();
  machine_.DoBackgroundWork();
  if (context_.crash_point == CrashPoint::kBetweenBatches) throw ProcessCrash{};
}

Reach ServerProcess::Reaches(const std::string& executor) const {
  return sessions_.ReachOf(executor);
}

// ---- commands of sessions and users ----------------------------------------------------------

void ServerProcess::Push(server::Submission submission) {
  queue_.Push(std::move(submission));
  context_.wake();
}

void ServerProcess::Submit(Command command, server::Done done) {
  if (const auto* join = std::get_if<JoinExecutor>(&command);
      join != nullptr && context_.variant == Variant::kKeepsZombies && IsKnown(*join))
    return done(std::span<const Event>());
  Submit(std::vector<Command>{std::move(command)}, std::move(done));
}

void ServerProcess::Submit(std::vector<Command> commands, server::Done done) {
  Push({.commands = std::move(commands), .done = std::move(done)});
}

void ServerProcess::Record(std::vector<Command> facts, server::Stored stored) {
  Push({.commands = std::move(facts), .stored = std::move(stored)});
}

void ServerProcess::RecordEnds(std::vector<Command> facts) {
  Push({.commands = std::move(facts), .ends_only = true});
}

// Whether the state has this process of the executor and has not marked it as lost.
bool ServerProcess::IsKnown(const JoinExecutor& join) const {
  const auto known = state()->executors.find(join.name);
  return known != state()->executors.end() && !known->second.lost &&
         known->second.instance == join.instance;
}

// ---- events ---------------------------------------------------------------------------------

void ServerProcess::OnStarted(const Brain& brain) {
  started_ = true;
  sessions_.OnStarted(brain, context_.timeline.now());
}

void ServerProcess::OnState(EventSeq, const Status& writable) {
  store_is_full_ = !writable.ok();
  sessions_.OnState(writable);
}

void ServerProcess::OnDurable(std::span<const Event> events, const Brain& brain) {
  if (context_.crash_point == CrashPoint::kAfterAnswers) throw ProcessCrash{};
  if (context_.variant != Variant::kKeepsZombies) return sessions_.OnDurable(events, brain);
  std::vector<Event> visible;
  for (const Event& event : events) {
    if (!std::holds_alternative<ExecutorLost>(event.fact)) visible.push_back(event);
  }
  sessions_.OnDurable(visible, brain);
}

// ---- connections -----------------------------------------------------------------------------

ServerProcess::Link& ServerProcess::LinkOf(StreamId stream) {
  auto& link = links_[stream];
  if (link == nullptr) link = std::make_unique<Link>(*this, stream);
  return *link;
}

void ServerProcess::OnMessage(StreamId stream, v1::FromExecutor message) {
  Link& link = LinkOf(stream);
  if (RefusesMessage(link, message)) return;
  const Time now = context_.timeline.now();
  if (message.has_hello()) {
    link.executor = message.hello().name();
    if (context_.variant == Variant::kTakesDeadHellos) message.mutable_hello()->clear_started_us();
    sessions_.OnHello(link.id(), message.hello(), now);
  }
  if (message.has_facts() && !message.facts().facts().empty()) {
    if (context_.variant == Variant::kAcksBeforeDurable)
      link.Acknowledge(message.facts().facts().rbegin()->seq());
    sessions_.OnFacts(link.id(), server::FromProto(*message.mutable_facts()), now);
  }
  if (message.has_heartbeat()) sessions_.OnHeartbeat(link.id(), message.heartbeat(), now);
  if (message.has_goodbye()) sessions_.OnGoodbye(link.id(), message.goodbye());
  if (message.has_health()) sessions_.OnHealth(link.id(), message.health());
}

// In kLeasesInLog, the server ignores all executors while the disk is full.
bool ServerProcess::RefusesMessage(Link& link, const v1::FromExecutor& message) {
  if (context_.variant != Variant::kLeasesInLog || !store_is_full_) return false;
  if (message.has_hello() || message.has_facts()) link.Refuse();
  return message.has_hello() || message.has_facts() || message.has_heartbeat();
}

void ServerProcess::OnClosed(StreamId stream) {
  const auto link = links_.find(stream);
  if (link == links_.end()) return;
  sessions_.OnClosed(link->second->id());
  links_.erase(link);
}

}  // namespace attune::sim
