#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "cli/client/endpoint.h"
#include "cli/doctor/facts.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "core/analysis/cost.h"
#include "core/base/ids.h"
#include "core/log/labels.h"
#include "tls/join.h"

namespace attune::cli {

// The default ports of a server.
inline constexpr int kHttpPort = 7070;
inline constexpr int kRpcPort = 7071;

// Shorter leases may expire while the operating system delays a process. Longer ones block the
// slots of a lost executor.
inline constexpr double kLeaseSecondsMin = 1;
inline constexpr double kLeaseSecondsMax = 3600;

inline constexpr int64_t kRankLogBytesMin = 1 << 20;

// Limits of an executor on its host. nullopt: the default; 0: no limit.
struct HostLimits {
  // Space that stays free. Nothing starts while less is free.
  std::optional<int64_t> disk_bytes;
  std::optional<int64_t> memory_bytes;
  std::optional<int64_t> rank_log_bytes;  // maximum size of a rank's log
};

// The dashboard and REST by HTTPS, for other hosts.
struct HttpsOptions {
  std::string host;  // address to listen at
  int port = 7443;
  std::filesystem::path certificate;  // PEM
  std::filesystem::path key;          // PEM
};

struct ServeOptions {
  std::filesystem::path data_dir = "attune-data";
  std::string host = "127.0.0.1";     // address of the dashboard and REST
  std::optional<int> http_port;       // nullopt: the default, or any free port if it is taken
  std::optional<HttpsOptions> https;  // nullopt: no HTTPS
  std::string rpc_host =
      "127.0.0.1";              // address for executors; with TLS unless it is a loopback address
  std::optional<int> rpc_port;  // like http_port
  bool rpc = true;              // accept executors of other processes
  bool executor = false;        // run an executor in this process
  std::string interface;        // as in ExecutorOptions
  Labels labels;                // as in ExecutorOptions
  HostLimits limits;            // as in ExecutorOptions
  double lease_seconds = 15;    // time without contact after which an executor ends its gangs
  // Folder for copies of each sweep's best checkpoints, which outlive executors. Empty: no copies.
  std::filesystem::path storage_path;
  // Address of the object store for sweeps that name none. Empty: they use none.
  std::string storage_address;
  std::optional<int64_t> storage_bandwidth;  // bytes per second of each host; nullopt: no limit
  std::optional<int64_t> code_bytes_max;     // of the files of a sweep's code; nullopt: 100 MB
  bool shared_data = false;  // other users may read the data folder, as the umask allows
  std::optional<GpuHourPrice> gpu_hour_price;  // nullopt: costs have no money
};

struct ExecutorOptions {
  std::string server;  // HOST:PORT
  std::string token;
  std::string fingerprint;  // of the server's certificate; empty: no TLS, only on this host
  // Without TLS: the server's data folder, which has its address. Empty: not known.
  std::filesystem::path server_dir;
  std::string name;         // empty: the host name
  std::optional<int> cpus;  // nullopt: all
  std::optional<int> gpus;
  std::optional<int64_t> memory_bytes;
  // Interface or address that ranks on other hosts connect to. Empty: from the route to the server.
  std::string interface;
  Labels labels;  // that resources.requires can select
  std::filesystem::path data_dir = "attune-data";
  // Space for copies of other executors' checkpoints that no trial needs now. nullopt: 10 GiB.
  std::optional<int64_t> copies_bytes;
  HostLimits limits;
  // Time without contact with the server after which the executor ends; 0: never.
  double give_up_seconds = 0;
  std::optional<double> seconds_left;  // until a batch system ends the executor; nullopt: no limit
  // Time for trials to save a checkpoint and exit after a request to end.
  double grace_seconds = 20;
  bool shared_data = false;     // as in ServeOptions
  bool temporary_data = false;  // data_dir is deleted when the executor ends
};

// A server in this process, possibly with an executor. Destroying it ends the executor's gangs and
// closes the server.
class RunningServer {
 public:
  virtual ~RunningServer() = default;
  virtual Endpoint endpoint() const = 0;
  virtual std::string https_url() const = 0;   // for other hosts; empty without HTTPS
  virtual std::string rpc_target() const = 0;  // empty if it accepts no executors
  virtual tls::Join join() const = 0;
  // Waits until the object store of a sweep that has ended has all of its files. See
  // server::Server::WaitForStorage.
  virtual Status WaitForStorage(SweepId sweep, const std::stop_token& stop) = 0;
};

enum class LogLevel { kInfo, kWarning };

// The parts of Attune that commands run inside this process. Tests replace them with fakes.
struct Host {
  std::function<Result<std::unique_ptr<RunningServer>>(const ServeOptions&)> start_server;
  // Returns when interrupted, after every gang has ended, or when the server refuses the executor.
  std::function<Status(const ExecutorOptions&, Interrupt&)> run_executor;
  // From now on, writes the log lines of these parts to `output`.
  std::function<void(Output& output, LogLevel level)> log_to;
  // Reads the value of a secret. On a terminal, prompts and reads a line without echo; otherwise
  // reads all of standard input without the final newline.
  std::function<Result<std::string>(const std::string& prompt, Interrupt& interrupt)> read_secret;
  // The facts of this host for a server and an executor on the data folder. Leaves no files behind.
  std::function<HostFacts(const std::filesystem::path& data_dir)> inspect;
};

}  // namespace attune::cli
