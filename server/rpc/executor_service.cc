#include "server/rpc/executor_service.h"

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "server/rpc/convert.h"
#include "server/rpc/executor_stream.h"

namespace attune::server {
namespace {

constexpr std::chrono::milliseconds kLeaseMargin{1'500};  // upper limit of the margin

Time Now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return Time{std::chrono::duration_cast<std::chrono::microseconds>(since).count()};
}

int64_t Microseconds(std::chrono::milliseconds duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

// An executor may send more than the request allows.
void CutTo(uint32_t limit_bytes, std::string& data) {
  if (data.size() > limit_bytes) data.resize(limit_bytes);
}

// The executor's lease counts from when it sent a heartbeat, the server's from when it arrived. The
// margin must only be long enough for the executor to kill its gangs.
std::chrono::milliseconds LeaseMargin(std::chrono::milliseconds lease) {
  return std::min(lease / 2, kLeaseMargin);
}

}  // namespace

ExecutorService::ExecutorService(Conductor& conductor, Options options)
    : conductor_(conductor),
      may_join_(options.may_join),
      mask_(std::move(options.mask)),
      read_piece_(std::move(options.read_piece)),
      read_code_(std::move(options.read_code)),
      fetching_(kFetchThreads),
      sessions_(*this,
                {.may_join = std::move(options.may_join),
                 .new_identity = std::move(options.new_identity),
                 .awaits_identity = std::move(options.awaits_identity),
                 .run = options.run,
                 .value_of = std::move(options.value_of),
                 .store_variables = std::move(options.store_variables),
                 .is_uploading = std::move(options.is_uploading),
                 .lease_ttl_us = Microseconds(options.lease_ttl),
                 .patience_us = Microseconds(options.lease_ttl + LeaseMargin(options.lease_ttl))}) {
  conductor_.Subscribe(this);
  conductor_.SetReachable([this](const std::string& executor) { return ReachOf(executor); });
}

bool ExecutorService::Connected(const std::string& executor) const {
  std::lock_guard lock(mutex_);
  return sessions_.Connected(executor);
}

Reach ExecutorService::ReachOf(const std::string& executor) const {
  std::lock_guard lock(mutex_);
  return sessions_.ReachOf(executor);
}

std::optional<Sessions::Pulse> ExecutorService::PulseOf(const std::string& executor) const {
  std::lock_guard lock(mutex_);
  return sessions_.PulseOf(executor, Now());
}

std::optional<Sessions::StorageUse> ExecutorService::StorageUseOf(
    const std::string& executor) const {
  std::lock_guard lock(mutex_);
  return sessions_.StorageUseOf(executor);
}

void ExecutorService::SetUploads(const std::string& executor, v1::Uploads uploads) {
  std::lock_guard lock(mutex_);
  sessions_.SetUploads(executor, std::move(uploads));
}

void ExecutorService::CheckReleases() {
  std::lock_guard lock(mutex_);
  sessions_.CheckReleases();
}

void ExecutorService::CheckLeases() {
  std::lock_guard lock(mutex_);
  sessions_.OnTime(Now());
}

// ---- Streams --------------------------------------------------------------------------------

grpc::ServerBidiReactor<v1::FromExecutor, v1::ToExecutor>* ExecutorService::Connect(
    grpc::CallbackServerContext* context) {
  return new ExecutorStream(*this, context->peer());
}

void ExecutorService::SetAuthenticated(Authenticated authenticated) {
  const std::lock_guard lock(authenticated_mutex_);
  authenticated_ = std::move(authenticated);
}

grpc::Status ExecutorService::Authenticate(const std::string& token,
                                           const std::string& peer) const {
  if (!may_join_(token))
    return {grpc::StatusCode::UNAUTHENTICATED,
            "the token does not allow an executor to join this server"};
  const std::lock_guard lock(authenticated_mutex_);
  if (authenticated_ && !authenticated_(peer))
    return {grpc::StatusCode::UNAVAILABLE, "the server has too many connections of executors"};
  return grpc::Status::OK;
}

SessionId ExecutorService::OnOpened(ExecutorLink& link) {
  std::lock_guard lock(mutex_);
  return sessions_.OnOpened(link, Now());
}

// The sessions may start the next read into `message` at once, so its contents are moved out first.
void ExecutorService::OnMessage(SessionId id, const std::string& peer, v1::FromExecutor& message) {
  if (message.has_facts()) {
    if (mask_) MaskFailures(*message.mutable_facts(), mask_);
    FactBatch batch = FromProto(*message.mutable_facts());
    std::lock_guard lock(mutex_);
    return sessions_.OnFacts(id, std::move(batch), Now());
  }
  const v1::FromExecutor taken = std::move(message);
  // OnHello refuses a wrong token and explains it.
  const bool too_many =
      taken.has_hello() &&
      Authenticate(taken.hello().token(), peer).error_code() == grpc::StatusCode::UNAVAILABLE;
  std::lock_guard lock(mutex_);
  if (too_many) return sessions_.OnTooManyConnections(id);
  if (taken.has_hello()) return sessions_.OnHello(id, taken.hello(), Now());
  if (taken.has_heartbeat()) return sessions_.OnHeartbeat(id, taken.heartbeat(), Now());
  if (taken.has_goodbye()) return sessions_.OnGoodbye(id, taken.goodbye());
  if (taken.has_health()) return sessions_.OnHealth(id, taken.health());
  if (taken.has_storage()) return sessions_.OnStorage(id, taken.storage());
  const std::string executor = sessions_.OnOtherMessage(id);
  if (taken.has_log_chunk()) logs_.OnAnswer(taken.log_chunk(), executor);
}

void ExecutorService::OnClosed(SessionId id) {
  std::lock_guard lock(mutex_);
  const std::string executor = sessions_.OnClosed(id);
  if (executor.empty()) return;
  logs_.OnGone(executor);
  pieces_.OnGone(executor);
}

// ---- The conductor --------------------------------------------------------------------------

void ExecutorService::OnStarted(const Brain& brain) {
  std::lock_guard lock(mutex_);
  sessions_.OnStarted(brain, Now());
}

void ExecutorService::OnState(EventSeq, const Status& writable) {
  std::lock_guard lock(mutex_);
  sessions_.OnState(writable);
}

void ExecutorService::OnDurable(std::span<const Event> events, const Brain& brain) {
  std::lock_guard lock(mutex_);
  sessions_.OnDurable(events, brain);
}

void ExecutorService::Submit(Command command, Done done) {
  conductor_.Submit(std::move(command), [this, done = std::move(done)](const auto& result) {
    std::lock_guard lock(mutex_);
    if (done) done(result);
  });
}

void ExecutorService::Record(std::vector<Command> facts, Stored stored) {
  conductor_.Record(std::move(facts), [this, stored = std::move(stored)](const Status& status) {
    std::lock_guard lock(mutex_);
    stored(status);
  });
}

void ExecutorService::RecordEnds(std::vector<Command> facts) {
  conductor_.RecordEnds(std::move(facts));
}

void ExecutorService::Post(StateReader look) {
  conductor_.Post([this, look = std::move(look)](const Brain& brain) {
    std::lock_guard lock(mutex_);
    look(brain);
  });
}

// ---- Logs and checkpoints -------------------------------------------------------------------

bool ExecutorService::Send(const std::string& executor, v1::ToExecutor message) {
  std::lock_guard lock(mutex_);
  ExecutorLink* const link = sessions_.LinkOf(executor);
  if (link != nullptr) link->Send(std::move(message));
  return link != nullptr;
}

Result<ExecutorService::LogSlice> ExecutorService::ReadLog(const std::string& executor,
                                                           const AttemptId& attempt, int rank,
                                                           int64_t offset, uint32_t limit_bytes) {
  auto chunk = logs_.Await(executor, [&](uint64_t request) {
    v1::ToExecutor message;
    v1::LogRequest& log = *message.mutable_log_request();
    log.set_request(request);
    *log.mutable_attempt() = ToProto(attempt, Epoch{});
    log.set_rank(static_cast<uint32_t>(rank));
    log.set_offset(offset);
    log.set_limit_bytes(limit_bytes);
    return Send(executor, std::move(message));
  });
  if (!chunk.ok()) return chunk.error();
  CutTo(limit_bytes, *chunk->mutable_data());
  return LogSlice{.data = std::move(*chunk->mutable_data()),
                  .offset = chunk->offset(),
                  .file_bytes = chunk->file_bytes(),
                  .gap_begin = chunk->gap_begin(),
                  .gap_end = chunk->gap_end()};
}

Result<v1::CheckpointPiece> ExecutorService::ReadCheckpoint(const std::string& executor,
                                                            const PieceRequest& wanted) {
  auto brought = pieces_.Await(executor, [&](uint64_t request) {
    v1::ToExecutor message;
    v1::CheckpointRequest& piece = *message.mutable_checkpoint_request();
    piece.set_request(request);
    piece.set_sweep(wanted.trial.sweep.value);
    piece.set_trial(wanted.trial.number.value);
    piece.set_folder(wanted.folder);
    piece.set_file(wanted.file);
    piece.set_offset(wanted.offset);
    piece.set_limit_bytes(wanted.limit_bytes);
    return Send(executor, std::move(message));
  });
  if (brought.ok()) CutTo(wanted.limit_bytes, *brought->mutable_data());
  return brought;
}

grpc::ServerUnaryReactor* ExecutorService::Deliver(grpc::CallbackServerContext* context,
                                                   const v1::CheckpointPiece* piece,
                                                   v1::Delivered*) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const grpc::Status authenticated = Authenticate(piece->token(), context->peer());
  if (authenticated.ok()) pieces_.OnAnswer(*piece);
  reactor->Finish(authenticated);
  return reactor;
}

grpc::ServerUnaryReactor* ExecutorService::Fetch(grpc::CallbackServerContext* context,
                                                 const v1::FetchRequest* request,
                                                 v1::CheckpointPiece* piece) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  if (const auto authenticated = Authenticate(request->token(), context->peer());
      !authenticated.ok()) {
    reactor->Finish(authenticated);
    return reactor;
  }
  if (++fetches_ > kFetchesMax) {
    --fetches_;
    reactor->Finish({grpc::StatusCode::UNAVAILABLE,
                     std::to_string(kFetchesMax) +
                         " requests for files are waiting already; try again in a moment"});
    return reactor;
  }
  fetching_.Run([this, context, reactor, request, piece] {
    --fetches_;
    if (context->IsCancelled())
      return reactor->Finish(
          {grpc::StatusCode::CANCELLED, "the executor no longer waits for the answer"});
    auto read = request->code().empty()
                    ? read_piece_(FromProto(request->checkpoint()), request->file(),
                                  request->offset(), request->limit_bytes())
                    : read_code_(request->code(), request->file(), request->offset(),
                                 request->limit_bytes());
    if (!read.ok()) {
      const bool passes = read.error().code == ErrorCode::kUnavailable;
      return reactor->Finish({passes ? grpc::StatusCode::UNAVAILABLE : grpc::StatusCode::NOT_FOUND,
                              read.error().message});
    }
    piece->set_data(std::move(read->data));
    piece->set_file_bytes(read->file_bytes);
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

}  // namespace attune::server
