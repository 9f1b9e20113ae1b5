#include "cli/text/numbers.h"
#include "cli/verbs/verb.h"

namespace attune::cli {
namespace {

struct ServeFlags {
  ServeOptions options;
  bool insecure = false;
};

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

ExitCode Serve(const ServeFlags& flags, Console& console) {
  if (!IsLoopback(flags.options.host) && !flags.insecure) {
    return Fail(console,
                {ErrorCode::kInvalid,
                 "--host " + flags.options.host +
                     ": other machines would reach this server without TLS, and everyone on the "
                     "way would read its token\nbehind a proxy with TLS or in a network you trust, "
                     "add --insecure-no-tls"});
  }
  const Interrupt::Subscription heard(console.interrupt, [] {});
  console.host.log_to(console.err, LogLevel::kInfo);
  Result<std::unique_ptr<RunningServer>> server = console.host.start_server(flags.options);
  if (!server.ok()) return Fail(console, server.error());
  console.err.Print("page       " + LoginUrl((*server)->endpoint()));
  console.err.Print("token      " + (flags.options.data_dir / "token").string());
  console.err.Print("executors  attune executor --server " + (*server)->rpc_target() +
                    " --token-file FILE");
  console.interrupt.Wait();
  console.err.Print("ending");
  return ExitCode::kSuccess;
}

struct ExecutorFlags {
  ExecutorOptions options;
  std::string memory;
  std::filesystem::path token_file;
};

ExitCode RunExecutor(const ExecutorFlags& flags, Console& console) {
  ExecutorOptions options = flags.options;
  if (!flags.memory.empty()) {
    options.memory_bytes = ParseBytes(flags.memory);
    if (!options.memory_bytes.has_value()) {
      return Fail(console, {ErrorCode::kInvalid, "--memory: `" + flags.memory +
                                                     "` is not a size; write 512MiB or 16GiB"});
    }
  }
  if (const char* token = std::getenv("ATTUNE_TOKEN"); token != nullptr) options.token = token;
  if (!flags.token_file.empty() || options.token.empty()) {
    const std::filesystem::path file =
        flags.token_file.empty() ? options.data_dir / "token" : flags.token_file;
    Result<std::string> token = ReadToken(file);
    if (!token.ok()) {
      return Fail(console,
                  {token.error().code, token.error().message +
                                           "\ngive the server's token with --token-file FILE or "
                                           "ATTUNE_TOKEN; it lies in the server's DATA-DIR/token"});
    }
    options.token = *token;
  }
  console.host.log_to(console.err, LogLevel::kInfo);
  const Status ran = console.host.run_executor(options, console.interrupt);
  if (!ran.ok()) return Fail(console, ran.error());
  return ExitCode::kSuccess;
}

void AddServe(CLI::App& app, Action& chosen) {
  CLI::App* const verb = app.add_subcommand("serve", "run a server until SIGTERM or Ctrl-C");
  auto flags = std::make_shared<ServeFlags>();
  ServeOptions& options = flags->options;
  verb->add_option("--data-dir", options.data_dir, "database, token, logs and checkpoints")
      ->type_name("DIR")
      ->capture_default_str();
  verb->add_option("--host", options.host, "address of both ports")->capture_default_str();
  verb->add_option("--port", options.http_port,
                   "of the page and REST; 7070, or any free one where it is taken")
      ->check(CLI::Range(0, 65535))
      ->type_name("N");
  verb->add_option("--rpc-port", options.rpc_port,
                   "for executors; 7071, or any free one where it is taken")
      ->check(CLI::Range(0, 65535))
      ->type_name("N");
  verb->add_option("--lease", options.lease_seconds,
                   "of silence, until an executor tears its gangs down")
      ->check(CLI::Range(kLeaseSecondsMin, kLeaseSecondsMax))
      ->type_name("SECONDS")
      ->capture_default_str();
  verb->add_flag("--with-executor", options.executor, "run trials on this machine too");
  verb->add_flag("--insecure-no-tls", flags->insecure,
                 "allow a --host that other machines can reach");
  verb->callback(
      [flags, &chosen] { chosen = [flags](Console& console) { return Serve(*flags, console); }; });
}

void AddExecutor(CLI::App& app, Action& chosen) {
  CLI::App* const verb =
      app.add_subcommand("executor", "run trials on this machine for a server elsewhere");
  auto flags = std::make_shared<ExecutorFlags>();
  ExecutorOptions& options = flags->options;
  verb->add_option("--server", options.server, "the server's port for executors")
      ->required()
      ->type_name("HOST:PORT");
  verb->add_option("--token-file", flags->token_file,
                   "file with the server's token (or ATTUNE_TOKEN, or DATA-DIR/token)")
      ->type_name("FILE");
  verb->add_option("--name", options.name, "unique among executors; the host's when absent");
  verb->add_option("--cpus", options.cpus, "to use; all when absent")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  verb->add_option("--gpus", options.gpus, "to use; all when absent")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  verb->add_option("--memory", flags->memory, "to use, such as 16GiB; all when absent")
      ->type_name("SIZE");
  verb->add_option("--data-dir", options.data_dir, "logs and checkpoints of its trials")
      ->type_name("DIR")
      ->capture_default_str();
  verb->callback([flags, &chosen] {
    chosen = [flags](Console& console) { return RunExecutor(*flags, console); };
  });
}

}  // namespace

void AddServeVerbs(CLI::App& app, Action& chosen) {
  AddServe(app, chosen);
  AddExecutor(app, chosen);
}

}  // namespace attune::cli
