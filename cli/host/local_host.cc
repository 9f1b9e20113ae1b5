#include "cli/host/local_host.h"

#include <malloc.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <span>
#include <vector>

#include "base/result.h"
#include "cli/algorithms.h"
#include "cli/host/local_connection.h"
#include "cli/host/network.h"
#include "cli/host/probe.h"
#include "cli/host/terminal.h"
#include "cli/joining.h"
#include "executor/agent/agent.h"
#include "executor/agent/host_address.h"
#include "logging/log.h"
#include "server/server.h"
#include "system/private_files.h"
#include "web/assets.h"

namespace attune::cli {
namespace {

// Slurm signals the processes of a job one after the other, within this time.
constexpr std::chrono::milliseconds kJobSignalSpread{100};

// Keeps freed memory in the process, because mapping memory anew for each piece of a checkpoint
// halves the speed of transfers. Variables of the environment have priority.
void KeepFreedMemory() {
#ifdef __GLIBC__
  for (const char* variable :
       {"GLIBC_TUNABLES", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"}) {
    if (std::getenv(variable) != nullptr) return;
  }
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

// Makes the data folder private to this user, unless it is shared.
void MakeFolderPrivate(const std::filesystem::path& data_dir, bool shared) {
  if (shared) return;
  KeepFilesPrivate();
  std::error_code failed;  // The error is reported when the folder is opened.
  std::filesystem::create_directories(data_dir, failed);
  if (!failed && !MakePrivate(data_dir, {"token", "folder-id"}))
    logging::Warn(
        "other users can list the data folder {}, which holds other files too or is not yours; "
        "the files that Attune creates in it are private",
        data_dir.string());
}

// kInvalid for a control character, which would break lines that contain paths of the folder.
Status CheckName(const std::filesystem::path& data_dir) {
  const std::string path = std::filesystem::absolute(data_dir).string();
  if (std::ranges::none_of(path, [](unsigned char c) { return c < 0x20 || c == 0x7f; })) return {};
  return Error{ErrorCode::kInvalid,
               "--data-dir: the path of the data folder has a control character, such as a "
               "newline; rename the folder or choose another one"};
}

// Writes log lines through Output, so that they do not break the block that it redraws in place.
class OutputSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit OutputSink(Output& output) : output_(output) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string_view text(line.data(), line.size());
    while (text.ends_with('\n')) text.remove_suffix(1);
    output_.Print(text);
  }
  void flush_() override {}

 private:
  Output& output_;
};

void LogTo(Output& output, LogLevel level) {
  auto logger = std::make_shared<spdlog::logger>("attune", std::make_shared<OutputSink>(output));
  const bool everything = level == LogLevel::kInfo;
  logger->set_level(everything ? spdlog::level::info : spdlog::level::warn);
  logger->set_pattern(everything ? "%Y-%m-%dT%H:%M:%S.%e %l: %v" : "%l: %v");
  spdlog::set_default_logger(std::move(logger));
}

std::span<const server::Asset> DashboardAssets() {
  static const std::vector<server::Asset> assets = [] {
    std::vector<server::Asset> files;
    for (const WebAsset& file : WebAssets()) {
      files.push_back({.path = file.path,
                       .mime = file.mime,
                       .etag = file.etag,
                       .body = file.body,
                       .gzip = file.gzip});
    }
    return files;
  }();
  return assets;
}

// Starts a server. If a default port is taken, uses any free port instead; ports from the command
// line have to be free.
Result<std::unique_ptr<server::Server>> StartOnAvailablePorts(const ServeOptions& options) {
  std::optional<server::HttpServer::Options::Https> https;
  if (options.https) {
    https = {.host = options.https->host,
             .port = options.https->port,
             .certificate = options.https->certificate,
             .key = options.https->key};
  }
  server::ServerOptions server_options{
      .algorithms = &AllAlgorithms(),
      .assets = DashboardAssets(),
      .data_dir = options.data_dir,
      .host = options.host,
      .http_port = options.http_port.value_or(kHttpPort),
      .https = std::move(https),
      .rpc_host = options.rpc_host,
      .rpc_port = options.rpc_port.value_or(kRpcPort),
      .rpc_tls = !IsLoopback(options.rpc_host),
      .rpc = options.rpc,
      .lease_ttl = std::chrono::milliseconds(std::llround(options.lease_seconds * 1000)),
      .storage_path = options.storage_path,
      .storage_address = options.storage_address,
      .storage_bytes_per_second_max = static_cast<uint64_t>(options.storage_bandwidth.value_or(0)),
      .gpu_hour_price = options.gpu_hour_price};
  if (options.code_bytes_max)
    server_options.code_bytes_max = static_cast<uint64_t>(*options.code_bytes_max);
  Result<std::unique_ptr<server::Server>> started = server::Server::Start(server_options);
  if (started.ok() || started.error().code != ErrorCode::kUnavailable) return started;
  if (options.http_port.has_value() && options.rpc_port.has_value()) return started;
  server_options.http_port = options.http_port.value_or(0);
  server_options.rpc_port = options.rpc_port.value_or(0);
  Result<std::unique_ptr<server::Server>> restarted = server::Server::Start(server_options);
  if (restarted.ok()) logging::Warn("{}; using free ports instead", started.error().message);
  return restarted;
}

// An address that no host has (RFC 5737), so that its route is the default route. Nothing is sent
// to it.
constexpr char kDefaultRouteTarget[] = "192.0.2.1";

// The address at which other hosts reach a server that listens on `host`. If that is every address,
// returns this host's address on the default route or, without one, its name.
std::string ReachableAddress(const std::string& host) {
  if (host != "0.0.0.0" && host != "::") return host;
  const std::string address = agent::LocalAddressTowards(kDefaultRouteTarget);
  return address.empty() ? HostName() : address;
}

// The address that ranks on other hosts connect to. `towards`: this host's address on the route to
// the server.
Result<gang::HostAddress> ChooseAddress(const std::string& interface, const std::string& towards) {
  Result<gang::HostAddress> chosen =
      agent::ChooseAddress(agent::InterfaceAddresses(), interface,
                           {towards, agent::LocalAddressTowards(kDefaultRouteTarget)});
  if (!chosen.ok()) return chosen.error();
  return std::move(chosen.value());
}

agent::HealthLimits ToHealthLimits(const HostLimits& limits) {
  agent::HealthLimits health;
  if (limits.disk_bytes) health.disk_free_bytes = static_cast<uint64_t>(*limits.disk_bytes);
  if (limits.memory_bytes) health.memory_free_bytes = static_cast<uint64_t>(*limits.memory_bytes);
  return health;
}

static_assert(kRankLogBytesMin == gang::kLogLimitMin);

uint64_t RankLogBytes(const HostLimits& limits) {
  return static_cast<uint64_t>(limits.rank_log_bytes.value_or(gang::kLogLimit));
}

class LocalServer final : public RunningServer {
 public:
  LocalServer(std::unique_ptr<server::Server> server, const ServeOptions& options)
      : server_(std::move(server)), rpc_(options.rpc), rpc_host_(options.rpc_host) {}

  // Ends the gangs while the server still runs, so that it learns of their end.
  ~LocalServer() override { agent_.reset(); }

  Status StartExecutor(const ServeOptions& options) {
    agent::AgentOptions agent{.channel = server_->LocalChannel(),
                              .token = server_->token(),
                              .name = HostName(),
                              .address = options.rpc_host,
                              .resources = agent::DetectResources(),
                              .labels = options.labels,
                              .data_dir = std::filesystem::absolute(options.data_dir),
                              .health = ToHealthLimits(options.limits),
                              .log_bytes_max = RankLogBytes(options.limits)};
    if (options.rpc ||
        !options.interface.empty()) {  // other executors may join, or the name may be wrong
      Result<gang::HostAddress> host = ChooseAddress(options.interface, options.rpc_host);
      if (!host.ok()) return host.error();
      agent.host = *std::move(host);
    }
    Result<std::unique_ptr<agent::Agent>> started = agent::Agent::Start(std::move(agent));
    if (!started.ok())
      return Error{ErrorCode::kInternal, "cannot start the executor: " + started.error().message};
    agent_ = std::move(started.value());
    return {};
  }

  Endpoint endpoint() const override {
    return {.url = server_->http_url(), .token = server_->token(), .source = "this process"};
  }
  std::string https_url() const override { return server_->https_url(); }
  std::string rpc_target() const override {
    if (!rpc_) return "";
    const std::string target = server_->rpc_target();
    return AddBrackets(ReachableAddress(rpc_host_)) + target.substr(target.rfind(':'));
  }
  tls::Join join() const override { return tls::ParseJoin(server_->join()).value(); }
  Status WaitForStorage(SweepId sweep, const std::stop_token& stop) override {
    return server_->WaitForStorage(sweep, stop);
  }

 private:
  std::unique_ptr<server::Server> server_;
  const bool rpc_;
  const std::string rpc_host_;
  std::unique_ptr<agent::Agent> agent_;
};

Result<std::unique_ptr<RunningServer>> StartServer(const ServeOptions& options) {
  KeepFreedMemory();
  if (Status name = CheckName(options.data_dir); !name.ok()) return name.error();
  MakeFolderPrivate(options.data_dir, options.shared_data);
  Result<std::unique_ptr<server::Server>> started = StartOnAvailablePorts(options);
  if (!started.ok()) {
    // kDenied would be exit code 4, which means a wrong token. A folder that is not writable is not
    // that.
    const Error& error = started.error();
    return Error{error.code == ErrorCode::kDenied ? ErrorCode::kUnavailable : error.code,
                 error.message};
  }
  auto running = std::make_unique<LocalServer>(*std::move(started), options);
  if (options.executor) {
    if (Status status = running->StartExecutor(options); !status.ok()) return status.error();
  }
  return Result<std::unique_ptr<RunningServer>>(std::move(running));
}

Status RunExecutor(const ExecutorOptions& options, Interrupt& interrupt) {
  KeepFreedMemory();
  if (Status name = CheckName(options.data_dir); !name.ok()) return name;
  MakeFolderPrivate(options.data_dir, options.shared_data);
  agent::HostResources resources = agent::DetectResources();
  if (options.cpus.has_value()) resources.cpus = static_cast<uint32_t>(*options.cpus);
  if (options.gpus.has_value()) resources.gpus = static_cast<uint32_t>(*options.gpus);
  if (options.memory_bytes.has_value()) {
    resources.memory_bytes = static_cast<uint64_t>(*options.memory_bytes);
  }
  const Result<std::string> towards = AddressTowards(options.server);
  if (!towards.ok()) return towards.error();
  const Result<gang::HostAddress> host = ChooseAddress(options.interface, *towards);
  if (!host.ok()) return host.error();
  agent::AgentOptions agent{
      .target = options.server,
      .fingerprint = options.fingerprint,
      .token = options.token,
      .name = options.name.empty() ? HostName() : options.name,
      .host = *host,
      .address = *towards,
      .resources = resources,
      .labels = options.labels,
      .data_dir = std::filesystem::absolute(options.data_dir),
      .health = ToHealthLimits(options.limits),
      .log_bytes_max = RankLogBytes(options.limits),
      .give_up = std::chrono::milliseconds(std::llround(options.give_up_seconds * 1000))};
  if (options.fingerprint.empty()) {
    agent.connect = [target = options.server, server_dir = options.server_dir] {
      return server_dir.empty() ? ConnectToOwnPort(target) : ConnectToServerOf(server_dir);
    };
  }
  if (options.copies_bytes) agent.copies_bytes_max = static_cast<uint64_t>(*options.copies_bytes);
  agent.temporary_data = options.temporary_data;
  if (options.seconds_left)
    agent.time_left = std::chrono::milliseconds(std::llround(*options.seconds_left * 1000));
  if (std::getenv("SLURM_JOB_ID") != nullptr) agent.gang_timing.leave_grace = kJobSignalSpread;
  logging::Info(
      "executor {}: {} CPUs, {} GPUs, {} MiB, {}", agent.name, resources.cpus, resources.gpus,
      resources.memory_bytes >> 20,
      host->address.empty()
          ? "runs no gangs over several hosts, because it has no IPv4 address that others reach; "
            "set --interface"
          : "reached at " + host->address + " (" + host->interface + ")");

  Result<std::unique_ptr<agent::Agent>> started = agent::Agent::Start(std::move(agent));
  if (!started.ok()) return Error{ErrorCode::kUnavailable, started.error().message};
  agent::Agent& running = *started.value();
  const std::chrono::milliseconds grace(std::llround(options.grace_seconds * 1000));
  const Interrupt::Subscription stop(interrupt, [&running, grace] {
    logging::Info("leaving: trials have {} s to save a checkpoint at their next report",
                  grace.count() / 1000);
    running.Leave(grace);
  });
  const agent::AgentExit exit = running.Wait();
  switch (exit.reason) {
    case agent::AgentExit::Reason::kRefused:
      return Error{ErrorCode::kDenied, "the server refuses this executor: " + exit.message};
    case agent::AgentExit::Reason::kSuperseded:
      return Error{ErrorCode::kConflict, "another executor has taken this name: " + exit.message +
                                             "\ngive each executor its own --name"};
    case agent::AgentExit::Reason::kServerLost:
      return Error{ErrorCode::kUnavailable, exit.message + " (--give-up)"};
    case agent::AgentExit::Reason::kStopped:
      break;
  }
  return {};
}

}  // namespace

Host LocalHost() {
  return {.start_server = StartServer,
          .run_executor = RunExecutor,
          .log_to = LogTo,
          .read_secret = ReadSecret,
          .inspect = InspectHost};
}

}  // namespace attune::cli
