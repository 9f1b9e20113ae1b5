#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <thread>

#include "base/result.h"
#include "cli/commands/command.h"
#include "cli/joining.h"
#include "cli/page_link.h"
#include "cli/text/numbers.h"
#include "object_storage/address.h"

namespace attune::cli {
namespace {

constexpr double kPriceMax = 1e9;

struct ServeFlags {
  ServeOptions options;
  std::vector<std::string> labels;
  HostLimitFlags limits;
  HttpsOptions https;
  std::optional<double> gpu_hour_price;
  std::string currency;
  std::string max_code;
  std::string storage;
  std::string storage_bandwidth;
  bool insecure = false;
  bool until_stdin_ends = false;

  void AddTo(CLI::App& command);
};

void ServeFlags::AddTo(CLI::App& command) {
  command
      .add_option("--data-dir", options.data_dir,
                  "Folder for the database, tokens, logs and checkpoints")
      ->type_name("DIR")
      ->capture_default_str();
  command
      .add_option("--storage-path", storage,
                  "Folder for copies of each sweep's best checkpoints; or an address, such as "
                  "s3://BUCKET/PREFIX, for copies of checkpoints, results and code")
      ->type_name("DIR");
  command
      .add_option("--storage-bandwidth", storage_bandwidth,
                  "Most bytes per second that each host sends to an address (default: no limit)")
      ->type_name("SIZE");
  command
      .add_option("--max-code", max_code,
                  "Maximum size of the files of a sweep's code (default: 100MB)")
      ->type_name("SIZE");
  command.add_option("--host", options.host, "Address of the dashboard and REST API")
      ->type_name("ADDRESS")
      ->capture_default_str();
  command
      .add_option("--rpc-host", options.rpc_host,
                  "Address for executors; 0.0.0.0: from all hosts, with TLS")
      ->type_name("ADDRESS")
      ->capture_default_str();
  command
      .add_option(
          "--port", options.http_port,
          "Port of the dashboard and REST API; 0: any free port (default: 7070, or any free port)")
      ->check(CLI::Range(0, 65535))
      ->type_name("N");
  command
      .add_option("--rpc-port", options.rpc_port,
                  "Port for executors; 0: any free port (default: 7071, or any free port)")
      ->check(CLI::Range(0, 65535))
      ->type_name("N");
  CLI::Option* const https_host =
      command.add_option("--https-host", https.host,
                         "HTTPS address of the dashboard and REST API; 0.0.0.0: from all hosts");
  https_host->type_name("ADDRESS");
  command.add_option("--https-port", https.port, "HTTPS port of the dashboard and REST API")
      ->needs(https_host)
      ->check(CLI::Range(0, 65535))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--tls-cert", https.certificate,
                  "Certificate chain in PEM; reloaded when it changes")
      ->type_name("FILE");
  command.add_option("--tls-key", https.key, "Private key of the certificate, in PEM")
      ->type_name("FILE");
  command
      .add_option("--lease", options.lease_seconds,
                  "Time without contact after which an executor ends its gangs")
      ->check(CLI::Range(kLeaseSecondsMin, kLeaseSecondsMax))
      ->type_name("SECONDS")
      ->capture_default_str();
  CLI::Option* const price = command.add_option(
      "--gpu-hour-price", gpu_hour_price, "Price of a GPU for an hour, to show costs in money");
  price->check(CLI::Range(0.0, kPriceMax))->type_name("N");
  command.add_option("--currency", currency, "Text to show after amounts of money")
      ->needs(price)
      ->type_name("TEXT");
  command.add_flag("--with-executor", options.executor, "Also run trials on this host");
  AddInterface(command, options.interface);
  AddLabels(command, labels);
  AddSharedData(command, options.shared_data);
  limits.AddTo(command);
  command.add_flag("--until-stdin-ends", until_stdin_ends,
                   "Also exit when stdin ends, for example with the parent process");
  command.add_flag("--insecure-no-tls", insecure,
                   "Allow a --host that other hosts can reach without TLS");
}

// A parent process holds the other end of stdin, which closes however that process ends.
void InterruptAtEndOfStdin(Interrupt& interrupt) {
  std::thread([&interrupt] {
    std::array<char, 256> ignored;
    ssize_t count = 0;
    do {
      count = ::read(STDIN_FILENO, ignored.data(), ignored.size());
    } while (count > 0 || (count < 0 && errno == EINTR));
    interrupt.Request();
  }).detach();
}

// nullopt without HTTPS; kInvalid if only some of its options are given.
Result<std::optional<HttpsOptions>> ReadHttps(const HttpsOptions& flags) {
  if (flags.host.empty() && flags.certificate.empty() && flags.key.empty())
    return std::optional<HttpsOptions>();
  if (flags.host.empty() || flags.certificate.empty() || flags.key.empty())
    return Error{ErrorCode::kInvalid,
                 "--https-host, --tls-cert, --tls-key: HTTPS needs all three options"};
  return std::optional(flags);
}

// Sets the folder or the address of --storage-path.
Status ReadStorage(const std::string& storage, ServeOptions& options) {
  if (!object_storage::HasScheme(storage)) {
    options.storage_path = storage;
    return {};
  }
  const auto address = object_storage::ParseAddress(storage);
  if (!address.ok())
    return Error{address.error().code, "--storage-path: " + address.error().message};
  if (address->provider == object_storage::Provider::kFolder) {
    options.storage_path = address->prefix;
  } else {
    options.storage_address = storage;
  }
  return {};
}

// Sets the number of bytes that an option gives, if it is given. `none`: the text for no limit.
Status ReadBytes(const std::string& option, const std::string& text, const std::string& none,
                 std::optional<int64_t>& bytes) {
  if (text.empty() || text == none) return {};
  bytes = ParseBytes(text);
  if (bytes) return {};
  return Error{ErrorCode::kInvalid, option + ": `" + text + "` is not a size; write 500MB or 1GiB"};
}

ExitCode Serve(const ServeFlags& flags, Console& console) {
  if (!IsLoopback(flags.options.host) && !flags.insecure) {
    return Fail(console,
                {ErrorCode::kInvalid,
                 "--host " + flags.options.host +
                     ": other hosts would reach this server without TLS, and others in the network "
                     "could read its token\nuse --https-host, --tls-cert and --tls-key; behind a "
                     "proxy with TLS or in a network that you trust, add --insecure-no-tls"});
  }
  ServeOptions options = flags.options;
  const Result<std::optional<HttpsOptions>> https = ReadHttps(flags.https);
  if (!https.ok()) return Fail(console, https.error());
  options.https = *https;
  const Result<Labels> labels = ReadLabels(flags.labels);
  if (!labels.ok()) return Fail(console, labels.error());
  options.labels = *labels;
  const Result<HostLimits> limits = flags.limits.Read();
  if (!limits.ok()) return Fail(console, limits.error());
  options.limits = *limits;
  for (const Status& read :
       {ReadBytes("--max-code", flags.max_code, "", options.code_bytes_max),
        ReadBytes("--storage-bandwidth", flags.storage_bandwidth, "0", options.storage_bandwidth),
        ReadStorage(flags.storage, options)}) {
    if (!read.ok()) return Fail(console, read.error());
  }
  if (flags.gpu_hour_price.has_value())
    options.gpu_hour_price = GpuHourPrice{*flags.gpu_hour_price, flags.currency};
  const std::string executor_flags =
      NamesOfExecutorFlags(options.interface, flags.labels, flags.limits);
  if (!executor_flags.empty() && !options.executor) {
    return Fail(console,
                {ErrorCode::kInvalid,
                 executor_flags + ": this server runs no executor; add --with-executor, or pass "
                                  "it to `attune executor`"});
  }
  const Interrupt::Subscription subscription(console.interrupt, [] {});
  console.host.log_to(console.err, LogLevel::kInfo);
  Result<std::unique_ptr<RunningServer>> server = console.host.start_server(options);
  if (!server.ok()) return Fail(console, server.error());
  const std::filesystem::path& data_dir = flags.options.data_dir;
  console.err.Print("page       " + PageLink((*server)->endpoint().url, data_dir, console.err));
  if (!(*server)->https_url().empty())
    console.err.Print("           " + PageLink((*server)->https_url(), data_dir, console.err));
  console.err.Print("token      " + (data_dir / "token").string());
  console.err.Print("executors  " + ExecutorCommand(**server, data_dir));
  if (flags.until_stdin_ends) InterruptAtEndOfStdin(console.interrupt);
  console.interrupt.Wait();
  console.err.Print("shutting down");
  return ExitCode::kSuccess;
}

}  // namespace

void AddServeCommand(CLI::App& app, Action& chosen) {
  AddCommand<ServeFlags>(app, chosen, "serve", "Run a server", Serve);
}

}  // namespace attune::cli
