#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/client/endpoint.h"
#include "cli/doctor/facts.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "core/log/labels.h"
#include "tls/join.h"

namespace attune::cli {

// Of a server for which nobody names others.
inline constexpr int kHttpPort = 7070;
inline constexpr int kRpcPort = 7071;

// Shorter leases end by the scheduler's whims, longer ones keep slots from everybody else.
inline constexpr double kLeaseSecondsMin = 1;
inline constexpr double kLeaseSecondsMax = 3600;

inline constexpr int64_t kRankLogBytesMin = 1 << 20;

// What an executor keeps to on its host. Absent: the usual limit; 0: there is none.
struct HostLimits {
  // What is to stay free: nothing starts there while less is.
  std::optional<int64_t> disk_bytes;
  std::optional<int64_t> memory_bytes;
  std::optional<int64_t> rank_log_bytes;  // at most, of a disk
};

// The page and REST by HTTPS, for other machines.
struct HttpsOptions {
  std::string host;  // to listen at
  int port = 7443;
  std::filesystem::path certificate;  // PEM
  std::filesystem::path key;          // the same
};

struct ServeOptions {
  std::filesystem::path data_dir = "attune-data";
  std::string host = "127.0.0.1";      // of the page and REST
  std::optional<int> http_port;        // absent: the usual one, or any free one where that is taken
  std::optional<HttpsOptions> https;   // and of these by HTTPS
  std::string rpc_host = "127.0.0.1";  // for executors; with TLS where it is no loopback address
  std::optional<int> rpc_port;         // the same
  bool rpc = true;                     // listen for executors of other processes
  bool executor = false;               // and run one in this process
  std::string interface;               // as of ExecutorOptions
  Labels labels;                       // the same
  HostLimits limits;                   // the same
  double lease_seconds = 15;           // of silence, until an executor gives its gangs up
  // Where copies of sweeps' best checkpoints outlive executors; empty: nowhere.
  std::filesystem::path storage_path;
  bool shared_data = false;  // other users may read the data folder, as far as the umask allows
};

struct ExecutorOptions {
  std::string server;  // HOST:PORT
  std::string token;
  std::string fingerprint;  // of the server's certificate; empty: no TLS, on this machine
  // Without TLS: the server's data folder, which tells where it listens; empty: not known.
  std::filesystem::path server_dir;
  std::string name;         // empty: the host's
  std::optional<int> cpus;  // absent: what the host has
  std::optional<int> gpus;
  std::optional<int64_t> memory_bytes;
  // Interface, or address of one, at which ranks of other hosts reach this one; empty: by the
  // route.
  std::string interface;
  Labels labels;  // that gangs may ask for
  std::filesystem::path data_dir = "attune-data";
  // Of copies of other executors' checkpoints that nothing needs, so many bytes stay; absent: 10
  // GiB.
  std::optional<int64_t> copies_bytes;
  HostLimits limits;
  // It ends after so long without a word from the server; 0: it waits for ever.
  double give_up_seconds = 0;
  std::optional<double> seconds_left;  // until something else ends it; absent: nothing does
  // After a wish that it ends, for what runs there to save and leave.
  double grace_seconds = 20;
  bool shared_data = false;  // as of ServeOptions
};

// A server of this process, and its executor when it has one. Destroying it tears the executor's
// gangs down and closes the server.
class RunningServer {
 public:
  virtual ~RunningServer() = default;
  virtual Endpoint endpoint() const = 0;
  virtual std::string https_url() const = 0;   // for other machines; empty where it has none
  virtual std::string rpc_target() const = 0;  // empty when it does not listen for executors
  virtual tls::Join join() const = 0;
};

enum class LogLevel { kInfo, kWarning };

// The parts of Attune that verbs run inside this process. The binary gives the real ones.
struct Host {
  std::function<Result<std::unique_ptr<RunningServer>>(const ServeOptions&)> start_server;
  // Returns when interrupted, with every gang gone, or when the server refuses this executor.
  std::function<Status(const ExecutorOptions&, Interrupt&)> run_executor;
  // What the parts log goes to `output` from now on, line by line.
  std::function<void(Output& output, LogLevel level)> log_to;
  // Reads the value of a secret: without echo from a terminal after a prompt, otherwise all of
  // standard input without the newline at its end.
  std::function<Result<std::string>(const std::string& prompt, Interrupt& interrupt)> read_secret;
  // What this host is like for a server and an executor on that data folder. Leaves nothing behind.
  std::function<HostFacts(const std::filesystem::path& data_dir)> inspect;
};

}  // namespace attune::cli
