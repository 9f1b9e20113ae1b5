#include "server/rpc/executor_service.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "server/rpc/convert.h"
#include "server/rpc/executor_stream.h"

namespace attune::server {
namespace {

constexpr int kHeartbeatsPerLease = 4;
constexpr std::chrono::seconds kLogPatience{5};

// Comparison that takes as long for a wrong token as for the right one.
bool SameToken(const std::string& given, const std::string& expected) {
  unsigned difference = given.size() == expected.size() ? 0 : 1;
  for (size_t i = 0; i < expected.size(); ++i)
    difference |= static_cast<unsigned char>(expected[i]) ^
                  static_cast<unsigned char>(i < given.size() ? given[i] : 0);
  return difference == 0;
}

std::string OtherProtocol(const v1::Hello& hello) {
  return "the executor is of release " + (hello.version().empty() ? "?" : hello.version()) +
         " and speaks protocol " + std::to_string(hello.protocol()) +
         ", this server is of release " + ATTUNE_VERSION + " and speaks protocol " +
         std::to_string(v1::PROTOCOL_CURRENT) + ": install the same release on both";
}

template <class T, class... Kinds>
constexpr bool OneOf = (std::is_same_v<T, Kinds> || ...);

// Whether this event can change what an executor should run.
bool ChangesDesired(const Event& event) {
  return std::visit(
      []<class F>(const F&) {
        return OneOf<F, AttemptAssigned, AttemptEnded, TrialDecided, TrialEnded, TrialYielding,
                     SweepResumed, SweepExtended, CheckpointDropped, CheckpointRemoved>;
      },
      event.fact);
}

}  // namespace

ExecutorService::ExecutorService(Conductor& conductor, Options options)
    : conductor_(conductor), options_(std::move(options)) {
  conductor_.Subscribe(this);
  conductor_.SetReachable([this](const std::string& executor) { return Reachable(executor); });
}

ExecutorService::~ExecutorService() = default;

bool ExecutorService::Reachable(const std::string& executor) const {
  std::lock_guard lock(mutex_);
  const auto found = streams_.find(executor);
  return found != streams_.end() && !found->second->leaving;
}

grpc::ServerBidiReactor<v1::FromExecutor, v1::ToExecutor>* ExecutorService::Connect(
    grpc::CallbackServerContext*) {
  return ExecutorStream::Open(*this).get();
}

void ExecutorService::OnHello(const StreamPtr& stream, const v1::Hello& hello) {
  if (!SameToken(hello.token(), options_.token)) {
    stream->Refuse(v1::Refusal::BAD_TOKEN,
                   "the token is not this server's: give the content of DATA-DIR/token with "
                   "--token-file");
    return;
  }
  if (hello.protocol() != v1::PROTOCOL_CURRENT) {
    stream->Refuse(v1::Refusal::VERSION, OtherProtocol(hello));
    return;
  }
  if (hello.name().empty() || hello.instance().empty()) {
    stream->Refuse(v1::Refusal::BAD_HELLO,
                   std::string("the executor did not say its ") +
                       (hello.name().empty() ? "name: start it with --name NAME" : "instance"));
    return;
  }
  stream->executor = hello.name();
  stream->instance = hello.instance();
  {
    std::lock_guard lock(mutex_);
    heard_[hello.name()] = Clock::now();
  }
  std::vector<Command> commands;
  commands.push_back(JoinExecutor{.name = hello.name(),
                                  .instance = hello.instance(),
                                  .address = hello.address(),
                                  .resources = FromProto(hello.resources())});
  conductor_.Submit(std::move(commands),
                    [this, stream](const auto& joined) { Welcome(stream, joined); });
}

// On the conductor's thread: the joining is durable, or was refused.
void ExecutorService::Welcome(const StreamPtr& stream,
                              const Result<std::span<const Event>>& joined) {
  if (!joined.ok()) {
    stream->Refuse(v1::Refusal::BUSY, joined.error().message);
    return;
  }
  v1::ToExecutor message;
  v1::Welcome& welcome = *message.mutable_welcome();
  welcome.set_lease_ttl_ms(static_cast<uint32_t>(options_.lease_ttl.count()));
  welcome.set_heartbeat_ms(static_cast<uint32_t>(options_.lease_ttl.count() / kHeartbeatsPerLease));
  stream->Send(std::move(message));

  StreamPtr earlier;
  {
    std::lock_guard lock(mutex_);
    earlier = std::exchange(streams_[stream->executor], stream);
  }
  if (earlier != nullptr) {
    if (earlier->instance == stream->instance) {
      earlier->Close();
    } else {
      earlier->Refuse(v1::Refusal::SUPERSEDED,
                      "another process has joined as executor " + stream->executor);
    }
  }
  spdlog::debug("executor {} joined", stream->executor);
  conductor_.Post([stream](const Brain& brain) {
    stream->welcomed = true;
    SendDesired(*stream, brain);
  });
}

void ExecutorService::OnFacts(const StreamPtr& stream, v1::Facts& facts) {
  if (stream->executor.empty()) return stream->Close();
  Heard(*stream);
  std::vector<Command> commands;
  uint64_t last = 0;
  commands.reserve(facts.facts_size());
  for (v1::Fact& fact : *facts.mutable_facts()) {
    last = std::max<uint64_t>(last, fact.seq());
    if (auto command = FromProto(std::move(fact))) commands.push_back(std::move(*command));
  }
  conductor_.Submit(std::move(commands), [stream, last](const auto& recorded) {
    if (!recorded.ok()) {
      stream->Refuse(v1::Refusal::BUSY, recorded.error().message);
      return;
    }
    stream->acknowledged = last;
    v1::ToExecutor message;
    message.mutable_ack()->set_seq(last);
    stream->Send(std::move(message));
  });
}

void ExecutorService::Heard(const ExecutorStream& stream) {
  std::lock_guard lock(mutex_);
  heard_[stream.executor] = Clock::now();
}

void ExecutorService::OnHeartbeat(const StreamPtr& stream, const v1::Heartbeat& heartbeat) {
  if (stream->executor.empty()) return stream->Close();
  Heard(*stream);
  v1::ToExecutor message;
  message.mutable_ack()->set_seq(stream->acknowledged);
  message.mutable_ack()->set_heartbeat_us(heartbeat.time_us());
  stream->Send(std::move(message));
}

void ExecutorService::OnClosed(const StreamPtr& stream) {
  {
    std::lock_guard lock(mutex_);
    const auto current = streams_.find(stream->executor);
    if (current == streams_.end() || current->second != stream) return;
    streams_.erase(current);
  }
  spdlog::debug("executor {} disconnected", stream->executor);
}

// ---- what became durable --------------------------------------------------------------------

void ExecutorService::OnDurable(std::span<const Event> events, const Brain& brain) {
  if (std::ranges::none_of(events, ChangesDesired)) return;
  std::vector<StreamPtr> streams;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [name, stream] : streams_) streams.push_back(stream);
  }
  for (const StreamPtr& stream : streams) {
    if (stream->welcomed) SendDesired(*stream, brain);
  }
}

void ExecutorService::SendDesired(ExecutorStream& stream, const Brain& brain) {
  v1::ToExecutor message;
  v1::Desired& desired = *message.mutable_desired();
  desired = ToDesired(brain.state(), stream.executor);
  std::string serialised = desired.SerializeAsString();
  if (stream.revision > 0 && serialised == stream.desired) return;
  stream.desired = std::move(serialised);
  desired.set_revision(++stream.revision);
  stream.Send(std::move(message));
}

// ---- leases ---------------------------------------------------------------------------------

void ExecutorService::CheckLeases() {
  struct Known {
    std::string name;
    Incarnation incarnation;
  };
  std::vector<Known> known;
  conductor_.Query([&](const Brain& brain) {
    for (const auto& [name, executor] : brain.state().executors) {
      if (!executor.lost) known.push_back({name, executor.incarnation});
    }
  });
  for (const Known& executor : known) {
    StreamPtr stream;
    {
      std::lock_guard lock(mutex_);
      const auto heard = heard_.find(executor.name);
      const auto last = heard == heard_.end() ? started_ : heard->second;
      if (Clock::now() - last <= Patience()) continue;
      if (const auto found = streams_.find(executor.name); found != streams_.end())
        stream = found->second;
    }
    if (stream != nullptr) stream->Close();
    std::vector<Command> commands;
    commands.push_back(LoseExecutor{
        executor.name, executor.incarnation,
        "nothing was heard from it for " +
            std::to_string(std::chrono::duration_cast<std::chrono::seconds>(Patience()).count()) +
            " s"});
    conductor_.Submit(std::move(commands), {});
  }
}

// ---- logs -----------------------------------------------------------------------------------

Result<ExecutorService::LogSlice> ExecutorService::ReadLog(const std::string& executor,
                                                           const AttemptId& attempt, int rank,
                                                           int64_t offset, uint32_t limit_bytes) {
  StreamPtr stream;
  std::future<v1::LogChunk> answer;
  uint64_t request = 0;
  {
    std::lock_guard lock(mutex_);
    const auto found = streams_.find(executor);
    if (found == streams_.end())
      return Error{ErrorCode::kUnavailable,
                   "executor " + executor +
                       ", which holds this log, is not connected: start it "
                       "again on the same data folder"};
    stream = found->second;
    request = ++last_log_request_;
    answer = log_requests_[request].get_future();
  }
  v1::ToExecutor message;
  v1::LogRequest& log = *message.mutable_log_request();
  log.set_request(request);
  *log.mutable_attempt() = ToProto(attempt, Epoch{});
  log.set_rank(static_cast<uint32_t>(rank));
  log.set_offset(offset);
  log.set_limit_bytes(limit_bytes);
  stream->Send(std::move(message));

  const bool answered = answer.wait_for(kLogPatience) == std::future_status::ready;
  {
    std::lock_guard lock(mutex_);
    log_requests_.erase(request);
  }
  if (!answered)
    return Error{ErrorCode::kUnavailable, "executor " + executor + " did not answer in time"};
  const v1::LogChunk chunk = answer.get();
  if (!chunk.error().empty()) return Error{ErrorCode::kNotFound, chunk.error()};
  return LogSlice{.data = chunk.data(), .offset = chunk.offset(), .file_bytes = chunk.file_bytes()};
}

void ExecutorService::OnLogChunk(const v1::LogChunk& chunk) {
  std::lock_guard lock(mutex_);
  const auto found = log_requests_.find(chunk.request());
  if (found == log_requests_.end()) return;
  found->second.set_value(chunk);
  log_requests_.erase(found);
}

}  // namespace attune::server
