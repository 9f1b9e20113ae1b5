#include "executor/agent/agent.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <random>
#include <thread>
#include <type_traits>
#include <utility>

#include "attune/v1/executor.grpc.pb.h"
#include "base/version.h"
#include "executor/agent/backoff.h"
#include "executor/agent/connection.h"
#include "executor/agent/data_folder.h"
#include "executor/agent/fetchers.h"
#include "executor/agent/fetching_gangs.h"
#include "executor/agent/hello.h"
#include "executor/agent/log_reader.h"
#include "executor/agent/machine.h"
#include "executor/agent/messages.h"
#include "executor/agent/name_lock.h"
#include "executor/agent/pinned_channel.h"
#include "executor/agent/server_channel.h"
#include "executor/gang/folders.h"
#include "executor/gang/preparation.h"
#include "executor/gang/supervisor.h"
#include "executor/health/health_watch.h"
#include "executor/processes/boot_clock.h"
#include "executor/processes/environment.h"
#include "executor/record/environment_recorder.h"
#include "executor/transfer/checkpoint_sender.h"
#include "executor/transfer/direct_sender.h"
#include "executor/transfer/remover.h"
#include "executor/transfer/uploader.h"
#include "logging/log.h"
#include "system/mailbox.h"
#include "system/numbers_file.h"
#include "system/random_word.h"
#include "tls/certificate.h"

namespace attune::agent {
namespace {

constexpr int kKeepaliveTimeMs = 20'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
constexpr int kConnectWithinMs = 5'000;
constexpr int kMessageBytesMax = 64 << 20;  // for a large Desired with thousands of assignments
constexpr size_t kMailboxFactsMax = 10'000;

grpc::ChannelArguments ChannelArguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Backoff chooses the pauses; gRPC's own pauses would be added to them.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, Backoff::kFirst.count());
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectWithinMs);  // timeout of one attempt
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  // A proxy from the environment must not see traffic that is meant for the server alone.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Without this name, the server would log that it has no certificate for its host name.
  arguments.SetSslTargetNameOverride(std::string(tls::kCertificateName));
  return arguments;
}

std::shared_ptr<grpc::Channel> MakeChannel(const AgentOptions& options,
                                           const std::optional<PinnedServer>& pinned) {
  if (options.channel) return options.channel;
  return grpc::CreateCustomChannel(
      options.target, pinned ? pinned->Credentials() : grpc::InsecureChannelCredentials(),
      ChannelArguments());
}

std::unique_ptr<ServerChannel> MakeServerChannel(const AgentOptions& options,
                                                 const std::optional<PinnedServer>& pinned) {
  if (options.connect) return std::make_unique<ServerChannel>(options.connect, ChannelArguments());
  return std::make_unique<ServerChannel>(MakeChannel(options, pinned));
}

Now CurrentTime() {
  return {.boot = gang::BootClock::now(),
          .wall_us = std::chrono::duration_cast<std::chrono::microseconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count()};
}

// The time at which the mailbox must wake up. Its clock stops while the machine is suspended, so
// the mailbox may wake up late but never early.
std::chrono::steady_clock::time_point WakeTime(gang::BootClock::time_point at) {
  if (at == Machine::kNever) return std::chrono::steady_clock::time_point::max();
  const auto pause = std::max(at - gang::BootClock::now(), gang::BootClock::duration(0));
  return std::chrono::steady_clock::now() + pause;
}

HealthCheck MakeHealthCheck(const AgentOptions& options) {
  return {{.data_dir = options.data_dir, .limits = options.health},
          GpuHealth(options.resources.gpus, gang::AllowedGpus())};
}

// The bytes that must stay free on the data folder's disk; 0 if the disk cannot be read.
uint64_t DiskFreeMin(const AgentOptions& options) {
  const Result<FileSystem> disk = ReadFileSystem(options.data_dir);
  return disk.ok() ? DiskFreeMin(options.health, disk.value()) : 0;
}

// Unique among running processes, because LockName() locks the name.
std::string HostIdentity(const AgentOptions& options) {
  return FolderIdentity(options.data_dir) + ":" + options.name;
}

}  // namespace

// Runs the machine on a thread. Everything except the constructor, Post() and Wait() runs on that
// thread, which blocks only on its mailbox.
class Agent::Impl final : private ServerLink, private Gangs, private Files {
 public:
  Impl(AgentOptions options, NameLock lock);
  ~Impl() override;

  Status Start();
  void Post(std::function<void()> work) { mailbox_.Post(std::move(work)); }
  AgentExit Wait() { return end_.get(); }

  void Stop() { machine_.Stop({}); }
  void Leave(std::chrono::milliseconds grace) { machine_.Leave(grace, CurrentTime()); }
  void PrestartLauncher(gang::Program program) {
    supervisor_->PrestartLauncher(std::move(program));
  }

 private:
  void RunThread();
  void OnFact(const gang::Fact& fact) {
    if (const auto* ended = std::get_if<gang::Ended>(&fact.what)) OnEnded(fact.attempt, *ended);
    machine_.OnFact(fact, CurrentTime());
  }
  void OnEnded(const gang::AttemptId& attempt, const gang::Ended& ended) {
    gangs_.OnEnded(attempt);
    health_->OnGangGone(attempt);
    recorder_.OnGangGone(attempt);
    // The server learns of the problem before the end, so that it does not assign the trial to this
    // host again.
    if (ended.failure && ended.failure->disk_full)
      health_->OnDiskFull(ended.failure->room_bytes, gang::BootClock::now());
  }

  // Back-pressure from the outbox to the workers. The supervision thread asks before it reads. If
  // reading is paused, the agent's thread resumes it once there is capacity.
  bool HasCapacity() const { return facts_in_mailbox_ < kMailboxFactsMax && !outbox_full_; }
  bool MayRead();
  void ResumeReadingIfPaused();

  // Runs `handle` on the agent's thread, unless a newer connection has replaced the current one.
  template <typename Handle>
  auto ForThisConnection(Handle handle);
  void Connect() override;
  void OnOpened(const Status& opened);
  void OnClosed(const grpc::Status& status);
  void Write(v1::FromExecutor message) override;
  void Close() override;

  void Run(gang::GangSpec spec) override {
    spec.host = options_.host;
    std::vector<std::filesystem::path> folders{spec.attempt_dir, spec.checkpoint_dir,
                                               spec.files_dir};
    if (spec.code) folders.push_back(spec.work_dir);
    health_->OnGangStarted(spec.attempt, std::move(folders));
    recorder_.OnGangStarted(spec);
    supervisor_->Run(std::move(spec));
  }
  void Cancel(const gang::AttemptId& attempt, gang::CancelReason reason) override {
    supervisor_->Cancel(attempt, reason);
  }
  void SetVerdict(const gang::AttemptId& attempt, const gang::Verdict& verdict) override {
    supervisor_->SetVerdict(attempt, verdict);
  }
  void Yield(const gang::AttemptId& attempt) override { supervisor_->Yield(attempt); }
  void OnPeersFinished(const gang::AttemptId& attempt) override {
    supervisor_->OnPeersFinished(attempt);
  }
  void SetRendezvous(const gang::AttemptId& attempt,
                     const channel::Rendezvous& rank_zero) override {
    supervisor_->SetRendezvous(attempt, rank_zero);
  }
  void SetDeadline(gang::BootClock::time_point deadline) override {
    supervisor_->SetDeadline(deadline == Machine::kNever ? std::chrono::nanoseconds(0)
                                                         : deadline.time_since_epoch());
  }

  // Ends waiting gangs if this process was suspended until the lease was over. Their trials may run
  // elsewhere, so they must not start.
  void CheckLease() { machine_.Step(CurrentTime()); }

  // Passes the results of a fetcher, or of the builder of environments, to the waiting gangs.
  template <typename Result>
  std::function<void(const gang::AttemptId&, Result)> PostResults(
      void (FetchingGangs::*on_result)(const gang::AttemptId&, const Result&)) {
    return [this, on_result](const gang::AttemptId& attempt, Result result) {
      Post([this, on_result, attempt, result = std::move(result)] {
        CheckLease();
        (gangs_.*on_result)(attempt, result);
      });
    };
  }

  // Passes events of other threads to the machine. `Time` is empty, or the time of the event.
  template <typename Value, typename... Time>
  auto ForMachine(void (Machine::*on_event)(Value, Time...)) {
    return [this, on_event](const std::remove_cvref_t<Value>& value) {
      Post([this, on_event, value] {
        if constexpr (sizeof...(Time) == 0)
          (machine_.*on_event)(value);
        else
          (machine_.*on_event)(value, CurrentTime());
      });
    };
  }

  void Remove(const Removals& removals) override { remover_.SetRemovals(removals); }
  void FindMissing(const v1::Inventory& inventory) override { remover_.FindMissing(inventory); }
  void SaveLogPosition(const LogPosition& seen) override {
    log_position_file_.Write({seen.identity, seen.log_seq, seen.server_run});
  }
  void ReadLog(const v1::LogRequest& request) override { log_reader_.Read(request); }
  void SendCheckpoint(const v1::CheckpointRequest& request) override { sender_.Send(request); }
  void Upload(const v1::Uploads& uploads) override { uploader_->SetUploads(uploads); }

  const AgentOptions options_;
  const NameLock lock_;
  const gang::Folders folders_;
  NumbersFile log_position_file_;  // the log position that this executor has seen
  const std::optional<PinnedServer> pinned_;
  DirectSender direct_sender_;
  Mailbox<std::function<void()>> mailbox_;
  const std::unique_ptr<ServerChannel> channel_;
  Machine machine_;
  CommandProcesses commands_;
  std::unique_ptr<gang::Supervisor> supervisor_;
  FetchingGangs gangs_;
  Remover remover_;
  LogReader log_reader_;
  CheckpointSender sender_;
  EnvironmentRecorder recorder_;
  std::unique_ptr<Fetchers> fetchers_;
  std::unique_ptr<Uploader> uploader_;
  std::unique_ptr<HealthWatch> health_;
  std::unique_ptr<Connection> connection_;  // null while the channel opens
  uint64_t connection_number_ = 0;
  std::optional<v1::FromExecutor> hello_;  // written when the channel is open
  bool closed_early_ = false;              // Close() was called before the channel was open
  std::atomic<size_t> facts_in_mailbox_ = 0;
  std::atomic<bool> outbox_full_ = false;
  std::atomic<bool> reading_paused_ = false;

  std::promise<AgentExit> ended_;
  std::shared_future<AgentExit> end_;
  std::thread thread_;
};

Agent::Impl::Impl(AgentOptions options, NameLock lock)
    : options_(std::move(options)),
      lock_(std::move(lock)),
      folders_(options_.data_dir),
      log_position_file_(lock_.folder / "seen", 3, 1),
      pinned_(options_.fingerprint.empty() ? std::nullopt
                                           : std::optional<PinnedServer>(options_.fingerprint)),
      direct_sender_(folders_, Fetchers::CodeFolder(lock_.folder), options_.host.address),
      channel_(MakeServerChannel(options_, pinned_)),
      machine_(MakeHello(options_, lock_.started_us, direct_sender_, log_position_file_), folders_,
               std::random_device{}(), *this, gangs_, *this, options_.give_up,
               options_.time_left ? gang::BootClock::now() + *options_.time_left : Machine::kNever),
      gangs_(
          *this,
          {.checkpoint =
               [this](const auto& attempt, const auto& files, const auto& digest) {
                 fetchers_->FetchCheckpoint(attempt, files, digest);
               },
           .code = [this](const gang::GangSpec& spec) { fetchers_->FetchCode(spec); },
           .data = [this](const gang::GangSpec& spec) { fetchers_->FetchData(spec); },
           .environment = [this](const gang::GangSpec& spec) { fetchers_->BuildEnvironment(spec); },
           .release = [this](const auto& attempt) { fetchers_->Release(attempt); }},
          [this](const gang::AttemptId& attempt, gang::Ended ended) {
            Post([this, fact = gang::Fact{attempt, CurrentTime().wall_us, std::move(ended)}] {
              OnFact(fact);
            });
          }),
      remover_(folders_, {.checkpoint = ForMachine(&Machine::OnRemoved),
                          .sweep = ForMachine(&Machine::OnSweepRemoved),
                          .gone = ForMachine(&Machine::OnCheckpointGone)}),
      log_reader_(folders_, ForMachine(&Machine::OnLog)),
      sender_(
          folders_, [this] { return channel_->stub(); }, options_.token),
      recorder_({options_.version, options_.resources.gpus > 0},
                [this](const gang::AttemptId& attempt, std::string record) {
                  Post([this, attempt, record = std::move(record)] {
                    machine_.OnRecorded(attempt, record, CurrentTime());
                  });
                }),
      end_(ended_.get_future()) {}

Agent::Impl::~Impl() {
  if (!thread_.joinable()) return;
  if (end_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) recorder_.AwaitIdle();
  Post([this] { Stop(); });
  thread_.join();
}

Status Agent::Impl::Start() {
  Result<std::unique_ptr<gang::Supervisor>> supervisor = gang::Supervisor::Start(
      {.launcher_log_dir = folders_.Launchers(),
       .containers_dir = lock_.folder / "containers",
       .timing = options_.gang_timing,
       .launcher = options_.launcher,
       .cgroups = {.identity = HostIdentity(options_)},
       .may_read = [this] { return MayRead(); },
       .discard = [this](std::filesystem::path folder) { remover_.Discard(std::move(folder)); },
       .is_other_child = [this](pid_t pid) { return commands_.Contains(pid); },
       .log_bytes_max = options_.log_bytes_max},
      [this](gang::Fact fact) {
        ++facts_in_mailbox_;
        Post([this, fact = std::move(fact)] {
          --facts_in_mailbox_;
          OnFact(fact);
        });
      });
  if (!supervisor.ok()) return supervisor.error();
  supervisor_ = std::move(supervisor.value());
  const CopyLimits limits{.bytes_max = options_.copies_bytes_max,
                          .disk_free_bytes_min = DiskFreeMin(options_)};
  const object_storage::Environment environment = gang::ProgramEnvironment({});
  fetchers_ = std::make_unique<Fetchers>(
      lock_.folder, limits,
      Fetchers::Access{[this] { return channel_->stub(); }, options_.token, environment}, commands_,
      Fetchers::Results{
          .checkpoint = PostResults(&FetchingGangs::OnCheckpoint),
          .code = PostResults(&FetchingGangs::OnCode),
          .data = PostResults(&FetchingGangs::OnData),
          .environment = PostResults(&FetchingGangs::OnEnvironment),
          .store_damaged = [this](const gang::CheckpointName& name, const std::string& digest) {
            Post([this, name, digest] {
              machine_.OnStored(ToProto(name), digest, "", CurrentTime());
            });
          }});
  uploader_ = std::make_unique<Uploader>(
      folders_, environment,
      Uploader::Events{.stored =
                           [this](const v1::Upload& upload) {
                             Post([this, upload] {
                               machine_.OnStored(upload.checkpoint(), upload.digest(),
                                                 upload.address(), CurrentTime());
                             });
                           },
                       .skipped = ForMachine(&Machine::OnUploadSkipped),
                       .problem = ForMachine(&Machine::OnStorageProblem)});
  health_ = std::make_unique<HealthWatch>(
      MakeHealthCheck(options_),
      HealthWatch::Events{.checked =
                              [this](const HostHealth& seen) {
                                if (seen.disk_is_short) fetchers_->EvictUnused();
                                Post([] {});  // wakes the thread up, which reads the latest health
                              },
                          .fills_disk =
                              [this](const gang::AttemptId& attempt, std::string message) {
                                logging::Warn("ending {}: {}", gang::ToString(attempt), message);
                                supervisor_->EndForDisk(attempt, std::move(message));
                              }});
  thread_ = std::thread([this] { RunThread(); });
  return {};
}

void Agent::Impl::RunThread() {
  gang::BootClock::time_point deadline = machine_.Step(CurrentTime());
  while (!machine_.done()) {
    for (const auto& work : mailbox_.TakeUntil(WakeTime(deadline))) work();
    machine_.OnHealth(health_->Latest(gang::BootClock::now()));
    deadline = machine_.Step(CurrentTime());
    outbox_full_ = machine_.is_full();
    ResumeReadingIfPaused();
  }
  health_.reset();
  uploader_.reset();
  fetchers_.reset();
  supervisor_.reset();
  ended_.set_value(machine_.exit());
}

// Checks again after it has set reading_paused_, because the agent's thread may have gained
// capacity in between without resuming.
bool Agent::Impl::MayRead() {
  if (HasCapacity()) return true;
  reading_paused_ = true;
  return HasCapacity();
}

void Agent::Impl::ResumeReadingIfPaused() {
  if (HasCapacity() && reading_paused_.exchange(false)) supervisor_->ResumeReading();
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
  closed_early_ = false;
  channel_->Open(ForThisConnection([this](const Status& opened) { OnOpened(opened); }));
}

void Agent::Impl::OnOpened(const Status& opened) {
  const std::optional<v1::FromExecutor> hello = std::exchange(hello_, std::nullopt);
  if (!opened.ok() || closed_early_) {
    const std::string fault = opened.ok() ? "the connection was closed" : opened.error().message;
    // Another user's program at the server's address is an error at startup, like a wrong
    // certificate.
    if (!opened.ok() && opened.error().code == ErrorCode::kDenied && !machine_.has_joined())
      machine_.Stop({AgentExit::Reason::kRefused, fault});
    return OnClosed({grpc::StatusCode::UNAVAILABLE, fault});
  }
  connection_ = std::make_unique<Connection>(
      *channel_->stub(),
      Connection::Events{.received = ForThisConnection([this](v1::ToExecutor message) {
                           machine_.OnMessage(std::move(message), CurrentTime());
                         }),
                         .written = ForThisConnection([this] { machine_.OnWritten(); }),
                         .broken = ForThisConnection([this] { machine_.OnBroken(); }),
                         .closed = ForThisConnection([this](const grpc::Status& status) {
                           connection_.reset();
                           OnClosed(status);
                         })});
  connection_->Write(*hello);
}

void Agent::Impl::Write(v1::FromExecutor message) {
  if (connection_) return connection_->Write(std::move(message));
  hello_ = std::move(message);
}

void Agent::Impl::Close() {
  if (connection_) return connection_->Close();
  closed_early_ = true;
}

// A wrong server at the address is an error when an executor starts. For an executor that has
// joined, the server counts as away: its gangs run until the lease expires.
void Agent::Impl::OnClosed(const grpc::Status& status) {
  const std::string other = pinned_ ? pinned_->TakeUnexpectedFingerprint() : "";
  if (other.empty()) return machine_.OnClosed(status.error_message(), CurrentTime());
  const std::string problem =
      "the certificate of " + options_.target + " has the fingerprint " + other + " and not " +
      options_.fingerprint +
      "; if its data folder was replaced, copy DATA-DIR/join from the server again";
  if (!machine_.has_joined()) {
    machine_.Stop({AgentExit::Reason::kRefused, problem});
  }
  machine_.OnClosed(problem, CurrentTime());
}

Result<std::unique_ptr<Agent>> Agent::Start(AgentOptions options) {
  if (options.version.empty()) options.version = kVersion;
  if (options.instance.empty()) options.instance = RandomWord();
  Result<NameLock> lock = LockName(options.data_dir, options.name, CurrentTime().wall_us);
  if (!lock.ok()) return lock.error();
  auto impl = std::make_unique<Impl>(std::move(options), std::move(lock.value()));
  if (Status started = impl->Start(); !started.ok()) return started.error();
  return std::unique_ptr<Agent>(new Agent(std::move(impl)));
}

Agent::Agent(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Agent::~Agent() = default;

void Agent::Stop() {
  impl_->Post([impl = impl_.get()] { impl->Stop(); });
}

void Agent::Leave(std::chrono::milliseconds grace) {
  impl_->Post([impl = impl_.get(), grace] { impl->Leave(grace); });
}

AgentExit Agent::Wait() { return impl_->Wait(); }

void Agent::PrestartLauncher(gang::Program program) {
  impl_->Post(
      [impl = impl_.get(), program = std::move(program)] { impl->PrestartLauncher(program); });
}

}  // namespace attune::agent
