#include "executor/agent/agent.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "attune/v1/executor.grpc.pb.h"
#include "executor/agent/backoff.h"
#include "executor/agent/boot_clock.h"
#include "executor/agent/checkpoint_remover.h"
#include "executor/agent/connection.h"
#include "executor/agent/host_lock.h"
#include "executor/agent/mailbox.h"
#include "executor/agent/messages.h"
#include "executor/agent/outbox.h"
#include "executor/agent/reconciler.h"
#include "executor/gang/folders.h"
#include "executor/gang/supervisor.h"

namespace attune::agent {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr Clock::time_point kNever = Clock::time_point::max();

constexpr milliseconds kWelcomeTimeout{10'000};
constexpr milliseconds kFarewellTimeout{1'000};  // for the last facts to be acknowledged
constexpr milliseconds kHeartbeatMin{10};
constexpr size_t kLogRequestsMax = 64;
constexpr int kKeepaliveTimeMs = 20'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
constexpr int kMessageBytesMax = 64 << 20;  // a large Desired: thousands of assignments

std::shared_ptr<grpc::Channel> MakeChannel(const AgentOptions& options) {
  if (options.channel) return options.channel;
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // The pauses are Backoff's to choose; gRPC's own would come on top.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, Backoff::kFirst.count());
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, Backoff::kMax.count());
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  return grpc::CreateCustomChannel(
      options.target,
      options.credentials ? options.credentials : grpc::InsecureChannelCredentials(), arguments);
}

std::string RandomHex() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::random_device random;
  std::string hex;
  for (int i = 0; i < 32; ++i) hex += kDigits[random() % kDigits.size()];
  return hex;
}

int64_t WallClockUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

// All but the constructor, Post() and Wait() runs on the agent's own thread, which waits for
// nothing but its mailbox.
class Agent::Impl {
 public:
  Impl(AgentOptions options, gang::UniqueFd lock);
  ~Impl();

  std::optional<gang::Error> Start();
  void Post(std::function<void()> work) { mailbox_.Post(std::move(work)); }
  AgentExit Wait();

  void BeginToStop(AgentExit exit);
  void Warm(gang::Program program) { supervisor_->Warm(std::move(program)); }

 private:
  void Run();
  bool IsDone();
  Clock::time_point NextDeadline() const;
  void OnTime(Clock::time_point now);

  void Connect();
  void Disconnect();
  void OnClosed(const grpc::Status& status);
  // Runs `handle` on the agent's thread, unless the present connection is a later one by then.
  template <typename Handle>
  auto ForThisConnection(Handle handle);

  void OnMessage(v1::ToExecutor message);
  void On(const v1::Welcome& welcome);
  void On(const v1::Refusal& refusal);
  void On(v1::Desired desired);
  void On(const v1::Ack& ack);
  void On(const v1::LogRequest& request);

  void OnFact(const gang::Fact& fact);
  void OnRemoved(const v1::CheckpointRemoval& removal);
  void Reconcile();
  void StartGang(const v1::Assignment& assignment);
  void Pump();
  void RenewLease(BootClock::time_point sent);
  void Write(v1::FromExecutor message);
  v1::FromExecutor Hello() const;
  v1::FromExecutor AnswerLogRequest(const v1::LogRequest& request) const;

  const AgentOptions options_;
  const gang::UniqueFd lock_;
  const gang::Folders folders_;
  const std::unique_ptr<v1::Executors::Stub> stub_;
  Mailbox mailbox_;
  Outbox outbox_;
  Reconciler reconciler_;
  Backoff backoff_;
  std::unique_ptr<gang::Supervisor> supervisor_;
  CheckpointRemover remover_;

  std::unique_ptr<Connection> connection_;
  uint64_t connection_number_ = 0;
  bool welcomed_ = false;
  bool writing_ = false;
  bool closing_ = false;
  bool said_goodbye_ = false;
  bool reached_ = true;  // false once an outage has been logged
  std::deque<v1::LogRequest> log_requests_;

  milliseconds lease_ttl_{0};
  milliseconds heartbeat_{0};
  Clock::time_point retry_at_ = Clock::time_point::min();
  Clock::time_point welcome_by_ = kNever;
  Clock::time_point heartbeat_at_ = kNever;
  BootClock::time_point hello_sent_;
  BootClock::time_point lease_until_ = BootClock::time_point::max();

  std::optional<AgentExit> exit_;  // set: on the way to the end
  Clock::time_point farewell_until_ = kNever;

  std::promise<AgentExit> ended_;
  std::shared_future<AgentExit> end_;
  std::thread thread_;
};

Agent::Impl::Impl(AgentOptions options, gang::UniqueFd lock)
    : options_(std::move(options)),
      lock_(std::move(lock)),
      folders_(options_.data_dir),
      stub_(v1::Executors::NewStub(MakeChannel(options_))),
      backoff_(std::random_device{}()),
      remover_(folders_,
               [this](const v1::CheckpointRemoval& removal) {
                 Post([this, removal] { OnRemoved(removal); });
               }),
      end_(ended_.get_future()) {}

Agent::Impl::~Impl() {
  if (!thread_.joinable()) return;
  Post([this] { BeginToStop({}); });
  thread_.join();
}

std::optional<gang::Error> Agent::Impl::Start() {
  gang::OrError<std::unique_ptr<gang::Supervisor>> supervisor = gang::Supervisor::Start(
      {.launcher_log_dir = folders_.Launchers(),
       .timing = options_.gang_timing,
       .launcher = options_.launcher},
      [this](gang::Fact fact) { Post([this, fact = std::move(fact)] { OnFact(fact); }); });
  if (!supervisor.ok()) return gang::Error{supervisor.error()};
  supervisor_ = std::move(supervisor.value());
  thread_ = std::thread([this] { Run(); });
  return std::nullopt;
}

AgentExit Agent::Impl::Wait() { return end_.get(); }

void Agent::Impl::Run() {
  while (!IsDone()) {
    mailbox_.Run(NextDeadline());
    OnTime(Clock::now());
    Pump();
  }
  supervisor_.reset();
  ended_.set_value(*exit_);
}

void Agent::Impl::BeginToStop(AgentExit exit) {
  if (exit_) return;
  exit_ = std::move(exit);
  reconciler_.ForgetWishes();
  for (const gang::AttemptId& attempt : reconciler_.CancelAll()) {
    supervisor_->Cancel(attempt, gang::CancelReason::kUnwanted);
  }
}

bool Agent::Impl::IsDone() {
  if (!exit_ || reconciler_.has_live()) return false;
  const Clock::time_point now = Clock::now();
  if (farewell_until_ == kNever) farewell_until_ = now + kFarewellTimeout;
  const bool all_said = said_goodbye_ && !writing_ && outbox_.empty();
  if (welcomed_ && !closing_ && !all_said && now < farewell_until_) return false;
  Disconnect();
  return connection_ == nullptr;
}

Clock::time_point Agent::Impl::NextDeadline() const {
  Clock::time_point next = welcome_by_;
  if (lease_until_ != BootClock::time_point::max()) {
    next = std::min(next, Clock::now() + (lease_until_ - BootClock::now()));
  }
  if (!connection_ && !exit_) next = std::min(next, retry_at_);
  if (welcomed_ && !writing_) next = std::min(next, heartbeat_at_);
  if (exit_ && connection_ && !closing_) next = std::min(next, farewell_until_);
  return next;
}

void Agent::Impl::OnTime(Clock::time_point now) {
  if (!connection_ && !exit_ && now >= retry_at_) Connect();
  if (now >= welcome_by_) {
    spdlog::warn("the server did not welcome this executor within {} ms", kWelcomeTimeout.count());
    Disconnect();
  }
  if (BootClock::now() < lease_until_) return;
  lease_until_ = BootClock::time_point::max();
  const std::vector<gang::AttemptId> cancelled = reconciler_.CancelAll();
  spdlog::error("nothing heard from the server for {} ms: tearing {} gangs down",
                lease_ttl_.count(), cancelled.size());
  reconciler_.ForgetWishes();
  for (const gang::AttemptId& attempt : cancelled) {
    supervisor_->Cancel(attempt, gang::CancelReason::kLeaseLost);
  }
  Disconnect();
}

template <typename Handle>
auto Agent::Impl::ForThisConnection(Handle handle) {
  return [this, handle, number = connection_number_](auto... arguments) {
    Post([this, handle, number, ... arguments = std::move(arguments)]() mutable {
      if (number == connection_number_) handle(std::move(arguments)...);
    });
  };
}

void Agent::Impl::Connect() {
  ++connection_number_;
  welcomed_ = false;
  writing_ = false;
  closing_ = false;
  welcome_by_ = Clock::now() + kWelcomeTimeout;
  connection_ = std::make_unique<Connection>(
      *stub_,
      Connection::Events{
          .received =
              ForThisConnection([this](v1::ToExecutor message) { OnMessage(std::move(message)); }),
          .written = ForThisConnection([this] { writing_ = false; }),
          .broken = ForThisConnection([this] { Disconnect(); }),
          .closed = ForThisConnection([this](const grpc::Status& status) { OnClosed(status); })});
  hello_sent_ = BootClock::now();
  Write(Hello());
}

void Agent::Impl::Disconnect() {
  welcome_by_ = kNever;
  if (!connection_ || closing_) return;
  closing_ = true;
  welcomed_ = false;
  connection_->Close();
}

void Agent::Impl::OnClosed(const grpc::Status& status) {
  connection_.reset();
  log_requests_.clear();
  const milliseconds pause = backoff_.Next();
  retry_at_ = Clock::now() + pause;
  if (reached_ && !exit_) {
    spdlog::warn("no connection to the server ({}); trying again", status.error_message());
  }
  reached_ = false;
}

void Agent::Impl::OnMessage(v1::ToExecutor message) {
  if (closing_) return;
  if (message.has_welcome()) On(message.welcome());
  if (message.has_refusal()) return On(message.refusal());
  if (!welcomed_) return;
  if (message.has_desired()) On(std::move(*message.mutable_desired()));
  if (message.has_ack()) On(message.ack());
  if (message.has_log_request()) On(message.log_request());
}

void Agent::Impl::On(const v1::Welcome& welcome) {
  if (!reached_) spdlog::info("connected to the server");
  reached_ = true;
  welcomed_ = true;
  welcome_by_ = kNever;
  lease_ttl_ = milliseconds(welcome.lease_ttl_ms());
  heartbeat_ = std::max(milliseconds(welcome.heartbeat_ms()), kHeartbeatMin);
  heartbeat_at_ = Clock::now() + heartbeat_;
  RenewLease(hello_sent_);
  backoff_.Reset();
  reconciler_.ForgetRevision();
  outbox_.Rewind();
}

// The server has read what was sent then. Not from now: an executor that was stopped for an hour
// finds its server's last messages when it goes on.
void Agent::Impl::RenewLease(BootClock::time_point sent) {
  if (lease_ttl_.count() > 0) lease_until_ = sent + lease_ttl_;
}

void Agent::Impl::On(const v1::Refusal& refusal) {
  Disconnect();
  switch (refusal.code()) {
    case v1::Refusal::BAD_TOKEN:
    case v1::Refusal::VERSION:
    case v1::Refusal::BAD_HELLO:
      return BeginToStop({AgentExit::Reason::kRefused, refusal.message()});
    case v1::Refusal::SUPERSEDED:
      return BeginToStop({AgentExit::Reason::kSuperseded, refusal.message()});
    default:
      spdlog::warn("the server cannot take this executor now: {}", refusal.message());
  }
}

void Agent::Impl::On(v1::Desired desired) {
  if (exit_) return;
  remover_.Want(desired.removals());
  reconciler_.Want(std::move(desired));
  Reconcile();
}

void Agent::Impl::On(const v1::Ack& ack) {
  if (ack.heartbeat_us() > 0) {
    RenewLease(BootClock::time_point(BootClock::duration(ack.heartbeat_us())));
  }
  for (const gang::AttemptId& attempt : outbox_.Acknowledge(ack.seq())) {
    reconciler_.OnEndAcknowledged(attempt);
  }
}

void Agent::Impl::On(const v1::LogRequest& request) {
  // Old ones are the likelier to have nobody waiting for them any more.
  if (log_requests_.size() == kLogRequestsMax) log_requests_.pop_front();
  log_requests_.push_back(request);
}

void Agent::Impl::OnFact(const gang::Fact& fact) {
  outbox_.Add(ToProto(fact));
  if (!std::holds_alternative<gang::Ended>(fact.what)) return;
  reconciler_.OnEnded(fact.attempt);
  if (!exit_) Reconcile();  // another may have waited for its GPUs
}

void Agent::Impl::OnRemoved(const v1::CheckpointRemoval& removal) {
  v1::Fact fact;
  fact.set_time_us(WallClockUs());
  v1::CheckpointRemoved& removed = *fact.mutable_removed();
  removed.set_sweep(removal.sweep());
  removed.set_trial(removal.trial());
  removed.set_attempt(removal.attempt());
  removed.set_step(removal.step());
  outbox_.Add(std::move(fact));
}

void Agent::Impl::Reconcile() {
  const Reconciler::Actions actions = reconciler_.Reconcile();
  for (const gang::AttemptId& attempt : actions.cancel) {
    supervisor_->Cancel(attempt, gang::CancelReason::kUnwanted);
  }
  for (const v1::Assignment& assignment : actions.start) StartGang(assignment);
  for (const auto& [attempt, verdict] : actions.tell) supervisor_->Tell(attempt, verdict);
  for (const gang::AttemptId& attempt : actions.yield) supervisor_->Yield(attempt);
  for (const gang::AttemptId& attempt : actions.disown) {
    outbox_.Add(ToProto({attempt, WallClockUs(), gang::Ended{gang::Outcome::kCancelled, {}}}));
  }
}

void Agent::Impl::StartGang(const v1::Assignment& assignment) {
  gang::OrError<gang::GangSpec> spec = ToSpec(assignment, folders_);
  if (spec.ok()) return supervisor_->Run(std::move(spec.value()));
  const gang::Failure failure{.kind = gang::FailureKind::kStart, .message = spec.error()};
  Post([this, failure, attempt = FromProto(assignment.attempt())] {
    OnFact({attempt, WallClockUs(), gang::Ended{gang::Outcome::kFailed, failure}});
  });
}

// Gives the connection its next message. Facts that come while one is on its way go together in the
// one after it.
void Agent::Impl::Pump() {
  if (!welcomed_ || writing_) return;
  v1::FromExecutor message;
  if (exit_ && !said_goodbye_) {
    said_goodbye_ = true;
    message.mutable_goodbye();
  } else if (Clock::now() >= heartbeat_at_) {
    heartbeat_at_ = Clock::now() + heartbeat_;
    message.mutable_heartbeat()->set_time_us(BootClock::now().time_since_epoch().count());
  } else if (!log_requests_.empty()) {
    message = AnswerLogRequest(log_requests_.front());
    log_requests_.pop_front();
  } else if (outbox_.has_unsent()) {
    *message.mutable_facts() = outbox_.TakeBatch();
  } else {
    return;
  }
  Write(std::move(message));
}

void Agent::Impl::Write(v1::FromExecutor message) {
  writing_ = true;
  connection_->Write(std::move(message));
}

v1::FromExecutor Agent::Impl::Hello() const {
  v1::FromExecutor message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_token(options_.token);
  hello.set_version(options_.version);
  hello.set_protocol(v1::PROTOCOL_CURRENT);
  hello.set_name(options_.name);
  hello.set_instance(options_.instance);
  hello.set_address(options_.address);
  hello.mutable_resources()->set_cpus(options_.resources.cpus);
  hello.mutable_resources()->set_gpus(options_.resources.gpus);
  hello.mutable_resources()->set_memory_bytes(options_.resources.memory_bytes);
  return message;
}

v1::FromExecutor Agent::Impl::AnswerLogRequest(const v1::LogRequest& request) const {
  v1::FromExecutor message;
  v1::LogChunk& chunk = *message.mutable_log_chunk();
  chunk.set_request(request.request());
  const std::filesystem::path log = gang::RankLog(folders_.Attempt(FromProto(request.attempt())),
                                                  static_cast<int>(request.rank()));
  gang::OrError<gang::LogPiece> piece = gang::ReadLog(log, request.offset(), request.limit_bytes());
  if (!piece.ok()) {
    chunk.set_error(ValidUtf8(piece.error()));
    return message;
  }
  chunk.set_data(std::move(piece.value().data));
  chunk.set_offset(piece.value().offset);
  chunk.set_file_bytes(piece.value().file_bytes);
  return message;
}

gang::OrError<std::unique_ptr<Agent>> Agent::Start(AgentOptions options) {
  if (options.version.empty()) options.version = ATTUNE_VERSION;
  if (options.instance.empty()) options.instance = RandomHex();
  gang::OrError<gang::UniqueFd> lock = LockName(options.data_dir, options.name);
  if (!lock.ok()) return gang::Error{lock.error()};
  auto impl = std::make_unique<Impl>(std::move(options), std::move(lock.value()));
  if (auto error = impl->Start()) return *std::move(error);
  return std::unique_ptr<Agent>(new Agent(std::move(impl)));
}

Agent::Agent(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Agent::~Agent() = default;

void Agent::Stop() {
  impl_->Post([impl = impl_.get()] { impl->BeginToStop({}); });
}

AgentExit Agent::Wait() { return impl_->Wait(); }

void Agent::Warm(gang::Program program) {
  impl_->Post([impl = impl_.get(), program = std::move(program)] { impl->Warm(program); });
}

}  // namespace attune::agent
