#include <chrono>

#include "base/result.h"
#include "cli/check_sweep.h"
#include "cli/joining.h"
#include "cli/json.h"
#include "cli/page_link.h"
#include "cli/text/numbers.h"
#include "cli/text/width.h"
#include "cli/verbs/cannot_start.h"
#include "cli/verbs/resume.h"
#include "cli/verbs/slurm_step.h"
#include "cli/verbs/verb.h"
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
  bool fresh = false;
  double lease_seconds = ServeOptions().lease_seconds;
  OutputFlags output;

  void AddTo(CLI::App& verb);

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

void RunFlags::AddTo(CLI::App& verb) {
  verb.footer(
      "Run again with the same file and data folder, it goes on with a sweep that has not ended.\n"
      "If the file means something else by then, it says what, and stops: see --edit and --new.");
  verb.add_option("FILE", file, "the sweep file")->required();
  verb.add_option("--data-dir", data_dir, "database, logs and checkpoints")
      ->type_name("DIR")
      ->capture_default_str();
  verb.add_option("--port", port, "of the page; 7070, or any free one where it is taken")
      ->check(CLI::Range(0, 65535))
      ->type_name("N");
  verb.add_option("--rpc-host", rpc_host,
                  "listen for other executors at this address; 0.0.0.0: all of this machine's. "
                  "They speak TLS where other machines can reach it");
  verb.add_option("--rpc-port", rpc_port, "listen for other executors here")
      ->check(CLI::Range(0, 65535))
      ->type_name("N");
  verb.add_option("--lease", lease_seconds, "of silence, until an executor tears its gangs down")
      ->check(CLI::Range(kLeaseSecondsMin, kLeaseSecondsMax))
      ->type_name("SECONDS")
      ->capture_default_str();
  verb.add_flag("--listen", listen, "listen for other executors on the usual port, 7071");
  verb.add_flag("--no-executor", no_executor,
                "run no trial in this process; wait for other executors");
  verb.add_flag("--slurm", slurm,
                "run trials on all nodes of the Slurm allocation that this runs in");
  CLI::Option* const edits = verb.add_flag(
      "--edit", edit, "change the file's sweep, which has not ended, to what the file says now");
  verb.add_flag("--new", fresh, "start another sweep, also if the file has one that has not ended")
      ->excludes(edits);
  AddInterface(verb, interface);
  AddLabels(verb, labels);
  AddSharedData(verb, shared_data);
  limits.AddTo(verb);
  verb.add_flag("--quiet", quiet, "no progress; only the outcome and errors");
  output.AddTo(verb);
}

// A file's name as a shell takes it back.
std::string Quoted(const std::string& word) {
  const bool plain = word.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789_-./+:@%,=") == std::string::npos;
  if (plain && !word.empty()) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + '\'';
}

// Empty for the usual folder.
std::string DataDirFlag(const RunFlags& flags) {
  return flags.data_dir == RunFlags().data_dir ? ""
                                               : " --data-dir " + Quoted(flags.data_dir.string());
}

std::string ResumeCommand(const RunFlags& flags) {
  return "attune run " + Quoted(flags.file) + DataDirFlag(flags);
}

// The sweep to work on: the one that this folder has not finished, or a new one.
struct Begun {
  rest::SweepDetail sweep;
  bool resumed = false;
};

// Makes the sweep of a file what the file says now, if it says something else.
Status TakeEdits(const RunFlags& flags, const SweepDocument& document, const SweepSpec& spec,
                 const rest::SweepDetail& sweep, Console& console, Api& api) {
  const auto difference = CompareWithFile(api, sweep, document, spec);
  if (!difference.ok()) return difference.error();
  if (difference->empty()) return {};
  const std::string of =
      flags.file + " differs from its sweep " + sweep.id + ", which has not ended";
  const std::string start_another =
      "--new starts another sweep; " + sweep.id + " runs as well then";
  if (!difference->obstacle.empty())
    return Error{ErrorCode::kInvalid, of + ": " + difference->obstacle + "\n  " + start_another};
  if (!flags.edit)
    return Error{ErrorCode::kInvalid, of + ": " + JoinWithCommas(difference->changes) +
                                          "\n  --edit changes " + sweep.id + "\n  " +
                                          start_another};
  const auto edited = api.SteerSweep(sweep.id, "edit", difference->patch);
  if (!edited.ok()) return edited.error();
  console.err.Print("sweep " + sweep.id + ": " + Clean(edited->effect));
  return {};
}

Result<Begun> Begin(const RunFlags& flags, const SweepDocument& document, const SweepSpec& spec,
                    Console& console, Api& api) {
  Result<Unfinished> unfinished = FindUnfinished(api, document);
  if (!unfinished.ok()) return unfinished.error();
  if (flags.fresh && unfinished->same.has_value()) {
    unfinished->others.insert(unfinished->others.begin(), unfinished->same->id);
    unfinished->same.reset();
  }
  if (unfinished->same.has_value()) {
    if (const Status same = TakeEdits(flags, document, spec, *unfinished->same, console, api);
        !same.ok())
      return same.error();
  }
  if (!unfinished->others.empty()) {
    console.err.Print("these sweeps of the data folder have not ended and run as well: " +
                      JoinWithCommas(unfinished->others) +
                      "\nend one with `attune sweep kill ID --data-dir " +
                      Quoted(flags.data_dir.string()) + '`');
  }

  Begun begun;
  if (unfinished->same.has_value()) {
    begun = {.sweep = *std::move(unfinished->same), .resumed = true};
  } else {
    auto created = api.CreateSweep(document);
    if (!created.ok()) return created.error();
    PrintWarnings(*created, console);
    begun.sweep = *std::move(created);
  }
  if (flags.quiet) return begun;

  const rest::SweepDetail& sweep = begun.sweep;
  const std::string of =
      sweep.max_trials > 0 ? FormatCount(sweep.max_trials, "trial") : std::string("trials");
  if (begun.resumed) {
    console.err.Print("resuming sweep " + sweep.id + ": " +
                      std::to_string(CountEnded(sweep.trials)) + " of " + of + " are done");
  } else {
    const std::string rungs = JoinWithCommas(sweep.rungs);
    console.err.Print("sweep " + sweep.id + ' ' + sweep.name + ": " + of + ", " + sweep.searcher +
                      " + " + sweep.scheduler + (rungs.empty() ? "" : ", rungs " + rungs));
    for (const std::string& taken : sweep.warm_start) console.err.Print("begins with " + taken);
  }
  if (sweep.external) {
    console.err.Print(
        "it has no command, so nothing runs its trials: ask for them, train them and "
        "tell their results\n  attune ask " +
        sweep.id + DataDirFlag(flags));
  }
  return begun;
}

ExitCode Report(const RunFlags& flags, const std::string& id, Clock::time_point started,
                Console& console, Api& api) {
  const double wall_seconds = std::chrono::duration<double>(Clock::now() - started).count();
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
    // The logs lie with the executor.
    const std::string serve = flags.Serve().executor ? "serve --with-executor" : "serve";
    console.err.Print("\nlook at it again with `attune " + serve + " --data-dir " +
                      Quoted(flags.data_dir.string()) + '`');
  }
  return code;
}

ExitCode RunSweep(const RunFlags& flags, Console& console) {
  const auto started = Clock::now();
  const double began = SecondsSince1970();
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
  const std::string useless = NamesOfExecutorFlags(flags.interface, flags.labels, flags.limits);
  if (!useless.empty() && !serve.executor) {
    return Fail(console,
                {ErrorCode::kInvalid, useless + ": only executors use this, and with " +
                                          (flags.slurm ? "--slurm" : "--no-executor") +
                                          " this process runs none; give it to `attune executor`"});
  }
  if (flags.slurm) {
    if (const Status inside = SlurmStep::Check(); !inside.ok())
      return Fail(console, inside.error());
  }

  // Whatever comes from here on, gangs are torn down in order.
  const Interrupt::Subscription heard(console.interrupt, [] {});
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
  const Result<Begun> begun = Begin(flags, *document, *checked.spec, console, api);
  if (!begun.ok()) return Fail(console, begun.error());
  const std::string id = begun->sweep.id;

  const std::unique_ptr<Progress> progress =
      flags.quiet ? ShowNothing(console.err) : ShowForPeople(console.err);
  const Result<WatchEnd> end = WatchSweep(api,
                                          {.sweep = id,
                                           .from_start = !begun->resumed,
                                           .executors_since = began,
                                           .executors_are_fixed = !serve.rpc},
                                          *progress, console.interrupt);
  if (!end.ok()) return Fail(console, end.error());
  if (*end == WatchEnd::kCannotStart) {
    const ExitCode code = EndUnstartable(
        console, api, id,
        "to let executors of other machines join: " + ResumeCommand(flags) + " --rpc-host 0.0.0.0");
    if (flags.output.json()) Report(flags, id, started, console, api);
    return code;
  }
  if (*end == WatchEnd::kInterrupted) {
    console.err.Print("interrupted; ending the running gangs (Ctrl-C again: at once)");
    nodes.reset();
    server->reset();
    console.err.Print("sweep " + id + " is not finished; go on from the last checkpoints with\n  " +
                      ResumeCommand(flags));
    return ExitCode::kInterrupted;
  }
  return Report(flags, id, started, console, api);
}

}  // namespace

void AddRunVerb(CLI::App& app, Action& chosen) {
  AddVerb<RunFlags>(app, chosen, "run", "run a sweep on this machine, to its end", RunSweep);
}

}  // namespace attune::cli
