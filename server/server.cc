#include "server/server.h"

#include <grpcpp/channel.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "base/version.h"
#include "logging/log.h"
#include "object_storage/address.h"
#include "object_storage/rclone.h"
#include "server/best_keeper.h"
#include "server/checkpoint_storage.h"
#include "server/code_keeper.h"
#include "server/conductor/conductor.h"
#include "server/conductor/log_keeper.h"
#include "server/conductor/proposal_runner.h"
#include "server/conductor/thread_pool.h"
#include "server/curve_keeper.h"
#include "server/folder/browser_sessions.h"
#include "server/folder/code_storage.h"
#include "server/folder/data_folder.h"
#include "server/folder/log_mark.h"
#include "server/folder/secrets.h"
#include "server/http/http_server.h"
#include "server/network/connection_limits.h"
#include "server/rpc/executor_service.h"
#include "server/rpc/rpc_server.h"
#include "server/server_backend.h"
#include "server/storage/store_jobs.h"
#include "server/storage/store_keeper.h"
#include "server/storage/stored_copies.h"
#include "server/storage/stored_sweeps.h"
#include "server/storage/stores.h"
#include "server/storage/upload_keeper.h"
#include "server/store/reader.h"
#include "server/store/sqlite_store.h"
#include "system/pause.h"
#include "system/random_word.h"
#include "system/secret.h"

namespace attune::server {
namespace {

std::string Address(const std::string& host, int port) {
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" +
         std::to_string(port);
}

HttpLimits HttpLimitsOf(const ConnectionLimits& connections) {
  HttpLimits limits;
  limits.connections = connections.http;
  limits.unauthenticated = connections.http_unauthenticated;
  limits.heavy_workers =
      std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 2, 1, 4);
  return limits;
}

// The number of searchers that run at the same time; the others wait.
constexpr int kThinkingThreads = 2;

// A store that is opened only after the ports. Nobody uses it before.
class DeferredStore final : public EventStore {
 public:
  Status Open(const std::filesystem::path& database) {
    auto opened = SqliteStore::Open(database);
    if (!opened.ok()) return opened.error();
    store_ = std::move(opened).value();
    if (store_->IsBuilding())
      logging::Info(
          "the tables for people are being rebuilt; requests that need them get status 503 until "
          "then");
    return {};
  }

  Status Append(std::span<const Event> batch) override { return store_->Append(batch); }
  Status AppendFromReserve(std::span<const Event> batch) override {
    return store_->AppendFromReserve(batch);
  }
  EventSeq LastSeq() const override { return store_->LastSeq(); }
  Status Read(EventSeq after, const std::function<void(const Event&)>& visit) const override {
    return store_->Read(after, visit);
  }
  Status SaveSnapshot(const Snapshot& snapshot) override { return store_->SaveSnapshot(snapshot); }
  Result<std::optional<Snapshot>> ReadSnapshot(EventSeq at_most) const override {
    return store_->ReadSnapshot(at_most);
  }
  Result<std::string> ReadEnded(const EndedSweepData& part) const override {
    return store_->ReadEnded(part);
  }
  Status Probe() override { return store_->Probe(); }
  bool DoBackgroundWork() override {
    const bool was_building = store_->IsBuilding();
    const bool more = store_->DoBackgroundWork();
    if (was_building && !store_->IsBuilding())
      logging::Info("the tables for people are complete again");
    return more;
  }
  bool NeedsSnapshot() const override { return store_->NeedsSnapshot(); }

 private:
  std::unique_ptr<SqliteStore> store_;
};

LogIdentity NewIdentity() {
  const std::string bytes = RandomBytes(sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), sizeof(bits));
  return LogIdentity(bits % ((uint64_t{1} << 53) - 1) + 1);  // exact in JSON, and not 0
}

class FolderLogMarks final : public LogMarks {
 public:
  explicit FolderLogMarks(const std::filesystem::path& data_dir) : file_(data_dir) {}

  std::optional<LogMark> Read() override {
    const auto mark = file_.Read();
    if (!mark) return std::nullopt;
    return LogMark{LogIdentity(mark->identity), EventSeq(mark->seq)};
  }
  void Write(const LogMark& mark) override {
    file_.Write({.identity = mark.identity.value, .seq = mark.seq.value});
  }

 private:
  LogMarkFile file_;
};

// Whether sweeps can use the object store that the options name.
Status CheckStoreOption(const ServerOptions& options) {
  if (options.storage_address.empty()) return {};
  constexpr char kOption[] = "--storage-path: ";
  const auto address = object_storage::ParseAddress(options.storage_address);
  if (!address.ok()) return Error{address.error().code, kOption + address.error().message};
  const auto rclone = object_storage::FindRclone(OwnEnvironment());
  if (!rclone.ok()) return Error{ErrorCode::kUnavailable, kOption + rclone.error().message};
  return {};
}

object_storage::StoreOptions StoreOptionsOf(const ServerOptions& options) {
  return {.bytes_per_second_max = options.storage_bytes_per_second_max};
}

struct SubscribedLogKeeper : LogKeeper {
  SubscribedLogKeeper(Conductor& conductor, LogMarks& marks)
      : LogKeeper(conductor, marks, NewIdentity) {
    conductor.Subscribe(this);
  }
};

}  // namespace

// Parts are in the order of construction. A part uses only those above it.
struct Server::Parts {
  Parts(DataFolder opened, std::optional<CheckpointStorage> opened_storage,
        const ServerOptions& options)
      : folder(std::move(opened)),
        named_tokens(folder.path()),
        sessions(folder.path()),
        secrets(folder.path()),
        storage(std::move(opened_storage)),
        code(folder.path() / "code", options.code_bytes_max),
        reader(Reader::MakeLazy(folder.database())),
        marks(folder.path()),
        conductor(*options.algorithms, store, SteadyClock()),
        log_keeper(conductor, marks),
        proposal_runner(conductor,
                        [this](std::function<void()> job) { thinking.Run(std::move(job)); }),
        executors(
            conductor,
            {.may_join = [this](const std::string& token) { return MayJoin(token); },
             .new_identity = NewIdentity,
             .awaits_identity = [this] { return log_keeper.AwaitsIdentity(); },
             .run = NewIdentity().value,
             .lease_ttl = options.lease_ttl,
             .value_of = [this](const std::string& name) { return ValueOf(name); },
             .store_variables = [this] { return StoreVariablesOf(secrets); },
             .is_uploading =
                 [this](const std::string& executor) {
                   return upload_keeper && upload_keeper->IsUploading(executor);
                 },
             .mask = [this](std::string& text) { Mask(text); },
             .read_piece =
                 [this](const CheckpointId& id, const std::string& file, uint64_t offset,
                        uint32_t limit_bytes) { return ReadPiece(id, file, offset, limit_bytes); },
             .read_code =
                 [this](const std::string& digest, const std::string& part, uint64_t offset,
                        uint32_t limit_bytes) {
                   return ReadCode(digest, part, offset, limit_bytes);
                 }}),
        stores([this] { return StoreVariablesOf(secrets); }, OwnEnvironment(),
               StoreOptionsOf(options)),
        stored_copies(stores),
        stored_sweeps(folder.path() / "storage"),
        store_jobs({.query = [this](const StateReader& look) { conductor.Query(look); },
                    .execute = [this](Command command) { return Execute(std::move(command)); },
                    .is_skipped =
                        [this](const std::string& path) {
                          return upload_keeper && upload_keeper->IsSkipped(path);
                        },
                    .server = folder.id(),
                    .database = folder.database(),
                    .scratch = folder.path() / "storage" / "scratch"},
                   *reader, code, stores, stored_sweeps),
        backend(conductor, executors, *reader, secrets, storage ? &*storage : nullptr, stores,
                stored_copies, options.storage_address),
        code_keeper(code, *reader),
        curves(folder.database()),
        upload_keeper(std::in_place, UploadOptionsOf(options), *reader, stored_sweeps),
        store_keeper(std::in_place, store_jobs, stores, stored_sweeps),
        host(options.host),
        rpc_host(options.rpc_host) {
    conductor.SetWallClock(WallClock());
    conductor.Subscribe(&proposal_runner);
    conductor.Subscribe(&curves);
    conductor.Subscribe(&code_keeper);
    conductor.Subscribe(&*upload_keeper);
    conductor.Subscribe(&*store_keeper);
    if (!storage) return;
    keeper = std::make_unique<BestKeeper>(*storage, backend.checkpoints(), *reader);
    conductor.Subscribe(keeper.get());
  }

  // The order ensures that no callback of the conductor and no request uses a destroyed part.
  ~Parts() {
    folder.Withdraw();  // before other programs can take the ports
    thinking.Stop();
    conductor.Stop();
    stored_copies.Stop();
    http.reset();
    rpc.reset();
    executors.StopFetching();
    keeper.reset();
    store_keeper.reset();
    upload_keeper.reset();
  }

  // Opens the ports first, so that executors keep their leases and people see the progress.
  Status Start(const ServerOptions& options) {
    if (const auto readable = secrets.Mask(); !readable.ok()) return readable.error();
    if (Status started = StartRpc(options); !started.ok()) return started;
    auto http_started = HttpServer::Start({.host = options.host,
                                           .port = options.http_port,
                                           .token = folder.token(),
                                           .version = kVersion,
                                           .gpu_hour_price = options.gpu_hour_price,
                                           .limits = HttpLimitsOf(connections),
                                           .https = options.https,
                                           .backend = &backend,
                                           .reader = reader.get(),
                                           .algorithms = options.algorithms,
                                           .named_tokens = &named_tokens,
                                           .code = &code,
                                           .sessions = &sessions,
                                           .assets = options.assets});
    if (!http_started.ok()) return http_started.error();
    http = std::move(http_started).value();
    folder.Announce("http://" + Address(host, http->port()),
                    options.rpc ? Address(rpc_host, rpc->port()) : "");
    if (Status opened = store.Open(folder.database()); !opened.ok()) return opened;
    return conductor.Start();
  }

  Status StartRpc(const ServerOptions& options) {
    std::string fingerprint;
    std::optional<tls::Identity> identity;
    if (options.rpc && options.rpc_tls) {
      auto known = folder.Identity();
      if (!known.ok()) return known.error();
      identity = std::move(known).value();
      fingerprint = tls::Fingerprint(identity->certificate).value();
    }
    auto word = folder.JoinWord(named_tokens, fingerprint);
    if (!word.ok()) return word.error();
    join = *std::move(word);
    auto started = RpcServer::Start(executors, {.listen = options.rpc,
                                                .host = options.rpc_host,
                                                .port = options.rpc_port,
                                                .identity = std::move(identity),
                                                .lease_ttl = options.lease_ttl,
                                                .connections = connections});
    if (!started.ok()) return started.error();
    rpc = std::move(started).value();
    return {};
  }

  bool MayJoin(const std::string& token) const {
    if (SecretsMatch(token, folder.token())) return true;
    const auto known = named_tokens.Find(token);
    return known.ok() && *known && (*known)->role != Role::kViewer;
  }

  // Start has read the secrets. From then on, the last ones that were read are always known.
  std::optional<std::string> ValueOf(const std::string& name) const {
    return secrets.Find(name).value();
  }
  void Mask(std::string& text) const { secrets.Mask().value()->Apply(text); }

  Result<ExecutorService::FilePiece> ReadPiece(const CheckpointId& id, const std::string& file,
                                               uint64_t offset, uint32_t limit_bytes) {
    auto piece = backend.ReadCheckpoint(id, file, offset, limit_bytes);
    if (!piece.ok()) return piece.error();
    return ExecutorService::FilePiece{std::move(piece->data), piece->file_bytes};
  }

  Result<ExecutorService::FilePiece> ReadCode(const std::string& digest, const std::string& part,
                                              uint64_t offset, uint32_t limit_bytes) {
    auto piece = code.Read(digest, part, offset, limit_bytes);
    if (!piece.ok()) return piece.error();
    return ExecutorService::FilePiece{std::move(piece->data), piece->file_bytes};
  }

  Status Execute(Command command) {
    const auto events = conductor.Execute(std::move(command));
    return events.ok() ? Status() : events.error();
  }

  // Why files of the sweep are not stored now; empty: no reason is known.
  std::string StorageProblem(SweepId sweep) {
    if (std::string problem = store_keeper->ProblemOf(sweep); !problem.empty()) return problem;
    for (const Backend::ExecutorStatus& executor : backend.Executors()) {
      if (!executor.storage_problem.empty() && upload_keeper->IsUploading(executor.name))
        return executor.storage_problem;
    }
    return "";
  }

  UploadKeeper::Options UploadOptionsOf(const ServerOptions& options) {
    return {
        .query = [this](const StateReader& look) { conductor.Query(look); },
        .use_of = [this](const std::string& executor) { return executors.StorageUseOf(executor); },
        .send = [this](const std::string& executor,
                       v1::Uploads uploads) { executors.SetUploads(executor, std::move(uploads)); },
        .variables = [this] { return StoreVariablesOf(secrets); },
        .changed = [this] { executors.CheckReleases(); },
        .bytes_per_second_max = options.storage_bytes_per_second_max};
  }

  DataFolder folder;
  const NamedTokens named_tokens;
  const BrowserSessions sessions;
  const Secrets secrets;
  const std::optional<CheckpointStorage> storage;
  CodeStorage code;
  DeferredStore store;
  std::unique_ptr<Reader> reader;
  FolderLogMarks marks;
  Conductor conductor;
  SubscribedLogKeeper log_keeper;  // before `executors`, which subscribes itself
  ThreadPool thinking{kThinkingThreads};
  ProposalRunner proposal_runner;
  ExecutorService executors;
  Stores stores;
  StoredCopies stored_copies;
  StoredSweeps stored_sweeps;
  StoreJobs store_jobs;
  ServerBackend backend;
  CodeKeeper code_keeper;
  CurveKeeper curves;
  std::optional<UploadKeeper> upload_keeper;
  std::optional<StoreKeeper> store_keeper;
  std::unique_ptr<BestKeeper> keeper;  // null: no storage
  std::unique_ptr<RpcServer> rpc;
  std::unique_ptr<HttpServer> http;
  const std::string host;
  const std::string rpc_host;
  const ConnectionLimits connections = ReserveDescriptors();
  std::string join;
};

Result<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  ATTUNE_CHECK(options.algorithms != nullptr);
  if (Status usable = CheckStoreOption(options); !usable.ok()) return usable.error();
  auto folder = DataFolder::Open(options.data_dir);
  if (!folder.ok()) return folder.error();
  std::optional<CheckpointStorage> storage;
  if (!options.storage_path.empty()) {
    auto opened = CheckpointStorage::Open(options.storage_path, folder->id());
    if (!opened.ok()) return opened.error();
    storage = std::move(opened).value();
  }
  auto parts = std::make_unique<Parts>(std::move(folder).value(), std::move(storage), options);
  if (Status started = parts->Start(options); !started.ok()) return started.error();
  return std::unique_ptr<Server>(new Server(std::move(parts)));
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Server::~Server() = default;

// Problems of executors come without an event, so this looks again and again. A problem must last,
// because many end by themselves.
Status Server::WaitForStorage(SweepId sweep, const std::stop_token& stop) {
  constexpr std::chrono::milliseconds kInterval{100};
  constexpr std::chrono::seconds kLastingProblem{15};
  parts_->conductor.Query([](const Brain&) {});  // the keepers know all events now
  auto worked_at = std::chrono::steady_clock::now();
  while (parts_->upload_keeper->IsBusy(sweep) || parts_->store_keeper->IsBusy(sweep)) {
    std::string problem = parts_->StorageProblem(sweep);
    const auto now = std::chrono::steady_clock::now();
    if (problem.empty()) worked_at = now;
    if (now - worked_at >= kLastingProblem)
      return Error{ErrorCode::kUnavailable, std::move(problem)};
    if (PauseUnlessStopped(kInterval, stop)) return Error{ErrorCode::kUnavailable, "interrupted"};
  }
  const size_t missing = parts_->upload_keeper->MissingCopies(sweep);
  if (missing == 0) return {};
  return Error{ErrorCode::kUnavailable,
               std::to_string(missing) + (missing == 1 ? " checkpoint" : " checkpoints") +
                   " cannot be copied: no executor with the files and rclone is connected"};
}

std::string Server::https_url() const { return parts_->http->https_url(); }

std::string Server::http_url() const {
  return "http://" + Address(parts_->host, parts_->http->port());
}

std::string Server::rpc_target() const {
  return parts_->rpc->port() == 0 ? "" : Address(parts_->rpc_host, parts_->rpc->port());
}

std::string Server::token() const { return parts_->folder.token(); }

std::string Server::join() const { return parts_->join; }

std::shared_ptr<grpc::Channel> Server::LocalChannel() { return parts_->rpc->LocalChannel(); }

}  // namespace attune::server
