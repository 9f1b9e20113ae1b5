#include <chrono>
#include <stop_token>

#include "base/result.h"
#include "cli/check_sweep.h"
#include "cli/commands/cannot_start.h"
#include "cli/commands/command.h"
#include "cli/commands/resume.h"
#include "cli/commands/slurm/step.h"
#include "cli/joining.h"
#include "cli/json.h"
#include "cli/page_link.h"
#include "cli/text/numbers.h"
#include "cli/text/width.h"
#include "cli/views/failure.h"
#include "cli/watch/clock.h"
#include "cli/watch/model.h"
#include "cli/watch/outcome.h"
#include "cli/watch/watch.h"

namespace attune::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct RunFlags {
  std::string file;
  std::filesystem::path data_dir = "attune-data";
  std::optional<int> port;
  std::string rpc_host;
  std::string interface;
  std::vector<std::string> labels;
  HostLimitFlags limits;
  std::optional<int> rpc_port;
  bool listen = false;
  bool no_executor = false;
  bool slurm = false;
  bool shared_data = false;
  bool quiet = false;
  bool edit = false;
  bool new_sweep = false;
  double lease_seconds = ServeOptions().lease_seconds;
  OutputFlags output;

  void AddTo(CLI::App& command);

  ServeOptions Serve() const {
    return {.data_dir = data_dir,
            .http_port = port,
            .rpc_host = !rpc_host.empty() ? rpc_host
                        : slurm           ? "0.0.0.0"
                                          : ServeOptions().rpc_host,
            .rpc_port = rpc_port,
            .rpc = listen || !rpc_host.empty() || rpc_port.has_value() || no_executor || slurm,
            .executor = !no_executor && !slurm,
            .interface = interface,
            .lease_seconds = lease_seconds,
            .shared_data = shared_data};
  }
};

void RunFlags::AddTo(CLI::App& command) {
  command.footer(
      "Run the same command again to resume an unfinished sweep.\nIf the file has changed, the "
      "command prints the differences and exits; see --edit and --new.");
  command.add_option("FILE", file, "Sweep file")->required();
  command.add_option("--data-dir", data_dir, "Folder for the database, logs and checkpoints")
      ->type_name("DIR")
      ->capture_default_str();
  command
      .add_option("--port", port,
                  "Port of the dashboard; 0: any free port (default: 7070, or any free port)")
      ->check(CLI::Range(0, 65535))
      ->type_name("N");
  command
      .add_option("--rpc-host", rpc_host,
                  "Accept executors at this address; 0.0.0.0: from all hosts, with TLS")
      ->type_name("ADDRESS");
  command.add_option("--rpc-port", rpc_port, "Accept executors on this port")
      ->check(CLI::Range(0, 65535))
      ->type_name("N");
  command
      .add_option("--lease", lease_seconds,
                  "Time without contact after which an executor ends its gangs")
      ->check(CLI::Range(kLeaseSecondsMin, kLeaseSecondsMax))
      ->type_name("SECONDS")
      ->capture_default_str();
  command.add_flag("--listen", listen, "Accept executors of this host on port 7071");
  command.add_flag("--no-executor", no_executor,
                   "Run no trials in this process; wait for executors");
  command.add_flag("--slurm", slurm, "Run trials on all nodes of the current Slurm allocation");
  CLI::Option* const edit_flag =
      command.add_flag("--edit", edit, "Apply the changed file to its unfinished sweep");
  command
      .add_flag("--new", new_sweep, "Start another sweep, even if the file has an unfinished one")
      ->excludes(edit_flag);
  AddInterface(command, interface);
  AddLabels(command, labels);
  AddSharedData(command, shared_data);
  limits.AddTo(command);
  command.add_flag("--quiet", quiet, "Print only the outcome and errors");
  output.AddTo(command);
}

// The word, quoted for a shell if necessary.
std::string ShellQuoted(const std::string& word) {
  const bool plain = word.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789_-./+:@%,=") == std::string::npos;
  if (plain && !word.empty()) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + '\'';
}

// Empty for the default data folder.
std::string DataDirFlag(const RunFlags& flags) {
  return flags.data_dir == RunFlags().data_dir
             ? ""
             : " --data-dir " + ShellQuoted(flags.data_dir.string());
}

std::string ResumeCommand(const RunFlags& flags) {
  return "attune run " + ShellQuoted(flags.file) + DataDirFlag(flags);
}

// The sweep to run: the unfinished one of this file, or a new one.
struct StartedSweep {
  rest::SweepDetail sweep;
  bool resumed = false;
};

// Applies the changes of the file to its unfinished sweep, if --edit allows that. kInvalid lists
// them otherwise.
Status ApplyFileChanges(const RunFlags& flags, const SweepDocument& document, const SweepSpec& spec,
                        const rest::SweepDetail& sweep, Console& console, Api& api) {
  const auto difference = CompareWithFile(api, sweep, document, spec);
  if (!difference.ok()) return difference.error();
  if (difference->empty()) return {};
  const std::string difference_text = flags.file + " differs from its unfinished sweep " + sweep.id;
  const std::string start_another = "--new starts another sweep next to " + sweep.id;
  if (!difference->obstacle.empty())
    return Error{ErrorCode::kInvalid,
                 difference_text + ": " + difference->obstacle + "\n  " + start_another};
  if (!flags.edit)
    return Error{ErrorCode::kInvalid, difference_text + ": " + JoinWithCommas(difference->changes) +
                                          "\n  --edit changes " + sweep.id + "\n  " +
                                          start_another};
  const auto edited = api.SteerSweep(sweep.id, "edit", difference->patch);
  if (!edited.ok()) return edited.error();
  console.err.Print("sweep " + sweep.id + ": " + Clean(edited->effect));
  return {};
}

Result<StartedSweep> StartOrResume(const RunFlags& flags, const SweepDocument& document,
                                   const SweepSpec& spec, Console& console, Api& api) {
  Result<Unfinished> unfinished = FindUnfinished(api, document);
  if (!unfinished.ok()) return unfinished.error();
  if (flags.new_sweep && unfinished->same.has_value()) {
    unfinished->others.insert(unfinished->others.begin(), unfinished->same->id);
    unfinished->same.reset();
  }
  if (unfinished->same.has_value()) {
    if (const Status applied =
            ApplyFileChanges(flags, document, spec, *unfinished->same, console, api);
        !applied.ok())
      return applied.error();
  }
  if (!unfinished->others.empty()) {
    console.err.Print("these unfinished sweeps of the data folder also run: " +
                      JoinWithCommas(unfinished->others) +
                      "\nto end one: `attune sweep kill ID --data-dir " +
                      ShellQuoted(flags.data_dir.string()) + '`');
  }

  StartedSweep started;
  if (unfinished->same.has_value()) {
    started = {.sweep = *std::move(unfinished->same), .resumed = true};
  } else {
    auto created = api.CreateSweep(document);
    if (!created.ok()) return created.error();
    PrintWarnings(*created, console);
    started.sweep = *std::move(created);
  }
  if (flags.quiet) return started;

  const rest::SweepDetail& sweep = started.sweep;
  const std::string trials =
      sweep.max_trials > 0 ? FormatCount(sweep.max_trials, "trial") : std::string("trials");
  if (started.resumed) {
    console.err.Print("resuming sweep " + sweep.id + ": " +
                      std::to_string(CountEnded(sweep.trials)) + " of " + trials + " have ended");
  } else {
    const std::string rungs = JoinWithCommas(sweep.rungs);
    console.err.Print("sweep " + sweep.id + ' ' + sweep.name + ": " + trials + ", " +
                      sweep.searcher + " + " + sweep.scheduler +
                      (rungs.empty() ? "" : ", rungs " + rungs));
    for (const std::string& source : sweep.warm_start) console.err.Print("warm start: " + source);
  }
  if (sweep.external) {
    console.err.Print(
        "the sweep has no command; ask for its trials and tell their results:\n  attune ask " +
        sweep.id + DataDirFlag(flags));
  }
  return started;
}

ExitCode PrintOutcome(const RunFlags& flags, const std::string& id, double wall_seconds,
                      Console& console, Api& api) {
  const auto sweep = api.Sweep(id);
  if (!sweep.ok()) return Fail(console, sweep.error());
  const ExitCode code = ExitCodeOfSweep(*sweep);
  if (flags.output.json()) {
    console.out.Print(Dump(OutcomeJson(*sweep, wall_seconds)));
    return code;
  }
  const auto trials = api.Trials(id);
  if (!trials.ok()) return Fail(console, trials.error());
  if (!flags.quiet) console.err.Print("");
  console.out.PrintLines(
      OutcomeLines(*sweep, trials->trials, wall_seconds, console.out.style(), console.out.width()));
  if (code == ExitCode::kSweepFailed) console.out.PrintLines(LastFailure(api, trials->trials));
  if (!flags.quiet) {
    // Only an executor can show the logs that it has.
    const std::string serve = flags.Serve().executor ? "serve --with-executor" : "serve";
    console.err.Print("\nto open the dashboard again: `attune " + serve + " --data-dir " +
                      ShellQuoted(flags.data_dir.string()) + '`');
  }
  return code;
}

// Waits until the sweep's object store, if it has one, has all of its files. Ctrl-C ends the wait.
// `address` is that of the sweep file.
void WaitForStorage(const RunFlags& flags, const std::string& sweep, const std::string& address,
                    RunningServer& server, Console& console) {
  if (!address.empty() && !flags.quiet) console.err.Print("storing files at " + Clean(address));
  std::stop_source stop;
  const Interrupt::Subscription subscription(console.interrupt, [&] { stop.request_stop(); });
  const Status stored = server.WaitForStorage(ParseSweepId(sweep).value(), stop.get_token());
  if (stored.ok()) return;
  console.err.Print("not everything is in the object store: " + Clean(stored.error().message) +
                    "\n  to continue: attune serve --with-executor --data-dir " +
                    ShellQuoted(flags.data_dir.string()));
}

ExitCode RunSweep(const RunFlags& flags, Console& console) {
  const auto started = Clock::now();
  const double start_time = SecondsSince1970();
  flags.output.Apply(console);
  const Result<SweepDocument> document = SweepDocument::Read(flags.file);
  if (!document.ok()) return Fail(console, document.error());
  const CheckedSweep checked = CheckSweep(*document);
  if (!checked.spec.has_value()) {
    console.err.PrintLines(checked.faults);
    return ExitCode::kUsage;
  }

  ServeOptions serve = flags.Serve();
  const Result<Labels> labels = ReadLabels(flags.labels);
  if (!labels.ok()) return Fail(console, labels.error());
  serve.labels = *labels;
  const Result<HostLimits> limits = flags.limits.Read();
  if (!limits.ok()) return Fail(console, limits.error());
  serve.limits = *limits;
  const std::string executor_flags =
      NamesOfExecutorFlags(flags.interface, flags.labels, flags.limits);
  if (!executor_flags.empty() && !serve.executor) {
    return Fail(console,
                {ErrorCode::kInvalid, executor_flags + ": this process runs no executor with " +
                                          (flags.slurm ? "--slurm" : "--no-executor") +
                                          "; pass it to `attune executor`"});
  }
  if (flags.slurm) {
    if (const Status inside = SlurmStep::Check(); !inside.ok())
      return Fail(console, inside.error());
  }

  // From here on, Ctrl-C ends the gangs in order instead of killing this process.
  const Interrupt::Subscription subscription(console.interrupt, [] {});
  console.host.log_to(console.err, LogLevel::kWarning);
  Result<std::unique_ptr<RunningServer>> server = console.host.start_server(serve);
  if (!server.ok()) return Fail(console, server.error());
  const Endpoint endpoint = (*server)->endpoint();
  if (!flags.quiet) {
    console.err.Print("page   " + PageLink(endpoint.url, flags.data_dir, console.err));
    if (!(*server)->rpc_target().empty()) {
      console.err.Print("executors  " + ExecutorCommand(**server, flags.data_dir));
    }
  }

  std::unique_ptr<SlurmStep> nodes;
  if (flags.slurm) {
    auto step = SlurmStep::Start(flags.data_dir, **server, console.err);
    if (!step.ok()) return Fail(console, step.error());
    nodes = *std::move(step);
  }

  Api api(endpoint);
  const Result<StartedSweep> started_sweep =
      StartOrResume(flags, *document, *checked.spec, console, api);
  if (!started_sweep.ok()) return Fail(console, started_sweep.error());
  const std::string id = started_sweep->sweep.id;

  const std::unique_ptr<Progress> progress =
      flags.quiet ? MakeQuietProgress(console.err) : MakeTextProgress(console.err);
  const Result<WatchEnd> end = WatchSweep(api,
                                          {.sweep = id,
                                           .from_start = !started_sweep->resumed,
                                           .executors_since = start_time,
                                           .executors_are_fixed = !serve.rpc},
                                          *progress, console.interrupt);
  if (!end.ok()) return Fail(console, end.error());
  const double wall_seconds = std::chrono::duration<double>(Clock::now() - started).count();
  if (*end == WatchEnd::kCannotStart) {
    const ExitCode code = EndUnstartable(
        console, api, id,
        "to let executors of other hosts join: " + ResumeCommand(flags) + " --rpc-host 0.0.0.0");
    if (flags.output.json()) PrintOutcome(flags, id, wall_seconds, console, api);
    return code;
  }
  if (*end == WatchEnd::kInterrupted) {
    console.err.Print(
        "interrupted: ending the running gangs (press Ctrl-C again to end them at once)");
    nodes.reset();
    server->reset();
    console.err.Print("sweep " + id + " is not finished; to resume it:\n  " + ResumeCommand(flags));
    return ExitCode::kInterrupted;
  }
  WaitForStorage(flags, id, checked.spec->storage, **server, console);
  return PrintOutcome(flags, id, wall_seconds, console, api);
}

}  // namespace

void AddRunCommand(CLI::App& app, Action& chosen) {
  AddCommand<RunFlags>(app, chosen, "run", "Run a sweep on this host", RunSweep);
}

}  // namespace attune::cli
