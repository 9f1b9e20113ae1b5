#include "cli/joining.h"
#include "cli/text/numbers.h"
#include "cli/verbs/verb.h"

namespace attune::cli {
namespace {

struct ServeFlags {
  ServeOptions options;
  bool insecure = false;
};

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
  console.err.Print("executors  " + ExecutorCommand(**server, flags.options.data_dir));
  console.interrupt.Wait();
  console.err.Print("ending");
  return ExitCode::kSuccess;
}

struct ExecutorFlags {
  ExecutorOptions options;
  std::string memory;
  JoinSource join;
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
  JoinSource source = flags.join;
  source.data_dir = options.data_dir;
  if (const char* token = std::getenv("ATTUNE_TOKEN"); token != nullptr) source.environment = token;
  const Result<tls::Join> join = FindJoin(source, options.server);
  if (!join.ok()) return Fail(console, join.error());
  options.token = join->token;
  options.fingerprint = join->fingerprint;
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
  verb->add_option("--host", options.host, "address of the page and REST")->capture_default_str();
  verb->add_option("--rpc-host", options.rpc_host,
                   "address for executors; 0.0.0.0: all of this machine's. They speak TLS where "
                   "other machines can reach it")
      ->capture_default_str();
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
  AddInterface(*verb, options.interface);
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
  verb->add_option("--join", flags->join.word, "the word that the server prints for executors")
      ->type_name("WORD");
  verb->add_option("--token-file", flags->join.file,
                   "file with that word (or ATTUNE_TOKEN, or DATA-DIR/join)")
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
  AddInterface(*verb, options.interface);
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
