#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>

#include "base/result.h"
#include "cli/joining.h"
#include "cli/page_link.h"
#include "cli/text/numbers.h"
#include "cli/verbs/verb.h"

namespace attune::cli {
namespace {

struct ServeFlags {
  ServeOptions options;
  std::vector<std::string> labels;
  HostLimitFlags limits;
  HttpsOptions https;
  bool insecure = false;
  bool until_stdin_ends = false;

  void AddTo(CLI::App& verb);
};

void ServeFlags::AddTo(CLI::App& verb) {
  verb.add_option("--data-dir", options.data_dir, "database, token, logs and checkpoints")
      ->type_name("DIR")
      ->capture_default_str();
  verb.add_option("--storage-path", options.storage_path,
                  "a folder for copies of each sweep's best checkpoints, which outlive the "
                  "executors that saved them")
      ->type_name("DIR");
  verb.add_option("--host", options.host, "address of the page and REST")->capture_default_str();
  verb.add_option("--rpc-host", options.rpc_host,
                  "address for executors; 0.0.0.0: all of this machine's. They speak TLS where "
                  "other machines can reach it")
      ->capture_default_str();
  verb.add_option("--port", options.http_port,
                  "of the page and REST; 7070, or any free one where it is taken")
      ->check(CLI::Range(0, 65535))
      ->type_name("N");
  verb.add_option("--rpc-port", options.rpc_port,
                  "for executors; 7071, or any free one where it is taken")
      ->check(CLI::Range(0, 65535))
      ->type_name("N");
  CLI::Option* const https_host = verb.add_option(
      "--https-host", https.host,
      "address of the page and REST for other machines, by HTTPS; 0.0.0.0: all of this machine's");
  https_host->type_name("ADDRESS");
  verb.add_option("--https-port", https.port, "of the page and REST by HTTPS")
      ->needs(https_host)
      ->check(CLI::Range(0, 65535))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--tls-cert", https.certificate,
                  "its certificate, and those up to the authority, in PEM; read again when it "
                  "changes")
      ->type_name("FILE");
  verb.add_option("--tls-key", https.key, "the certificate's private key, in PEM")
      ->type_name("FILE");
  verb.add_option("--lease", options.lease_seconds,
                  "of silence, until an executor tears its gangs down")
      ->check(CLI::Range(kLeaseSecondsMin, kLeaseSecondsMax))
      ->type_name("SECONDS")
      ->capture_default_str();
  verb.add_flag("--with-executor", options.executor, "run trials on this machine too");
  AddInterface(verb, options.interface);
  AddLabels(verb, labels);
  AddSharedData(verb, options.shared_data);
  limits.AddTo(verb);
  verb.add_flag("--until-stdin-ends", until_stdin_ends,
                "end as well when nothing more can come on stdin: with the program that holds its "
                "other end");
  verb.add_flag("--insecure-no-tls", insecure, "allow a --host that other machines can reach");
}

// For whoever holds the other end: it closes however that program comes to its end.
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

// HTTPS is wanted with all that it takes, or not at all.
Result<std::optional<HttpsOptions>> Https(const HttpsOptions& flags) {
  if (flags.host.empty() && flags.certificate.empty() && flags.key.empty())
    return std::optional<HttpsOptions>();
  if (flags.host.empty() || flags.certificate.empty() || flags.key.empty())
    return Error{
        ErrorCode::kInvalid,
        "--https-host, --tls-cert, --tls-key: HTTPS takes all three, the address to listen "
        "at and a certificate with its key"};
  return std::optional(flags);
}

ExitCode Serve(const ServeFlags& flags, Console& console) {
  if (!IsLoopback(flags.options.host) && !flags.insecure) {
    return Fail(console,
                {ErrorCode::kInvalid,
                 "--host " + flags.options.host +
                     ": other machines would reach this server without TLS, and everyone on the "
                     "way would read its token\nserve them with --https-host, --tls-cert and "
                     "--tls-key; or behind a proxy with TLS, or in a network you trust, add "
                     "--insecure-no-tls"});
  }
  ServeOptions options = flags.options;
  const Result<std::optional<HttpsOptions>> https = Https(flags.https);
  if (!https.ok()) return Fail(console, https.error());
  options.https = *https;
  const Result<Labels> labels = ReadLabels(flags.labels);
  if (!labels.ok()) return Fail(console, labels.error());
  options.labels = *labels;
  const Result<HostLimits> limits = flags.limits.Read();
  if (!limits.ok()) return Fail(console, limits.error());
  options.limits = *limits;
  const std::string useless = NamesOfExecutorFlags(options.interface, flags.labels, flags.limits);
  if (!useless.empty() && !options.executor) {
    return Fail(console, {ErrorCode::kInvalid,
                          useless + ": only executors use this, and this server runs none; add "
                                    "--with-executor, or give it to `attune executor`"});
  }
  const Interrupt::Subscription heard(console.interrupt, [] {});
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
  console.err.Print("ending");
  return ExitCode::kSuccess;
}

}  // namespace

void AddServeVerb(CLI::App& app, Action& chosen) {
  AddVerb<ServeFlags>(app, chosen, "serve", "run a server until SIGTERM or Ctrl-C", Serve);
}

}  // namespace attune::cli
