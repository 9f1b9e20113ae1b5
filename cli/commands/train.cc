#include <chrono>
#include <cstdlib>

#include "base/result.h"
#include "cli/check_sweep.h"
#include "cli/commands/cannot_start.h"
#include "cli/commands/command.h"
#include "cli/commands/resume.h"
#include "cli/commands/settings.h"
#include "cli/json.h"
#include "cli/page_link.h"
#include "cli/text/numbers.h"
#include "cli/views/trial_view.h"
#include "cli/watch/clock.h"
#include "cli/watch/outcome.h"
#include "cli/watch/training.h"
#include "cli/watch/watch.h"

namespace attune::cli {
namespace {

// The path in messages about the generated sweep file; RemoveDocumentPosition removes it.
constexpr char kDocument[] = "train.json";

struct TrainFlags : ClientFlags {
  std::vector<std::string> program;
  int workers = 1;
  std::optional<int> gpus_per_worker;
  std::optional<int64_t> steps;
  std::string name = "train";
  std::string metric = "loss";
  std::string mode = "min";
  std::vector<std::string> parameters;
  std::vector<std::string> env;
  std::vector<std::string> settings;
  bool detach = false;

  void AddTo(CLI::App& command);
};

void TrainFlags::AddTo(CLI::App& command) {
  command.footer(
      "attune train --workers 4 -- ./train\n"
      "Trains on the server's executors, or on this host if no server runs.");
  command.add_option("COMMAND", program, "Program and arguments, after --")->required();
  command.add_option("--workers", workers, "Number of workers")
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--gpus-per-worker", gpus_per_worker, "GPUs per worker (default: none)")
      ->type_name("N");
  command
      .add_option("--steps", steps,
                  "Step at which training is complete (default: when the program ends)")
      ->type_name("N");
  command
      .add_option("-p,--parameter", parameters,
                  "Parameter of the program's configuration (repeatable)")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command
      .add_option("--env", env, "Environment variable NAME=VALUE, or NAME of a secret (repeatable)")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false);
  command.add_option("--metric", metric, "Metric that selects the best checkpoint")
      ->type_name("NAME")
      ->capture_default_str();
  command.add_option("--mode", mode, "Whether a smaller or larger metric is better")
      ->check(CLI::IsMember({"min", "max"}))
      ->type_name("min|max")
      ->capture_default_str();
  command.add_option("--name", name, "Name of the sweep")->type_name("NAME")->capture_default_str();
  command
      .add_option("--set", settings,
                  "Other key of the sweep file, such as failure.max_restarts=10 (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command.add_flag("-d,--detach", detach, "Print the trial's name and exit");
  ClientFlags::AddTo(command);
}

// Adds NAME=VALUE to the environment of the sweep's program, and NAME alone to its secrets. The
// value of NAME in this process's environment is not sent, because the sweep would store it.
void AddEnvironment(const std::vector<std::string>& words, Json& sweep) {
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
      sweep["secrets"].push_back(word);
    } else {
      sweep["env"][word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
}

// The sweep file, with one trial, that the command line describes.
Result<SweepDocument> MakeDocument(const TrainFlags& flags) {
  const Result<Json> values = ReadAssignments(flags.parameters, "-p");
  if (!values.ok()) return values.error();
  const Result<Json> patch = PatchOf(flags.settings);
  if (!patch.ok()) return patch.error();

  Json parameters = Json::object();
  for (const auto& [name, value] : values->items()) parameters[name] = {{"value", value}};
  Json sweep = {{"name", flags.name},
                {"command", flags.program},
                {"metric", {{"name", flags.metric}, {"mode", flags.mode}}},
                {"parameters", parameters},
                {"searcher", {{"name", "random"}}},
                {"resources", {{"workers", flags.workers}}},
                {"failure", {{"max_failed_trials", 0}}},
                {"stop", {{"max_trials", 1}}}};
  AddEnvironment(flags.env, sweep);
  if (flags.gpus_per_worker) sweep["resources"]["gpus_per_worker"] = *flags.gpus_per_worker;
  if (flags.steps) sweep["scheduler"] = {{"name", "fifo"}, {"max", *flags.steps}};
  sweep.merge_patch(*patch);
  return SweepDocument{.path = kDocument, .text = Dump(sweep, 2)};
}

// The message without its position in the generated sweep file, which the user has not written.
std::string RemoveDocumentPosition(const std::string& fault) {
  if (!fault.starts_with(kDocument)) return fault;
  const size_t space = fault.find(": ");
  return space == std::string::npos ? fault : fault.substr(space + 2);
}

// Follows the training until it ends. `here`: the server runs in this process, since `start_time`.
ExitCode Follow(const TrainFlags& flags, const rest::Sweep& sweep, bool here, double start_time,
                Console& console, Api& api) {
  const std::string& id = sweep.id;
  const TrialName trial{.sweep = id, .number = 0};
  const std::unique_ptr<Progress> progress = MakeTrainingProgress(
      api, trial, flags.output.json() ? console.err : console.out, console.err);
  // On another process's server the training is always new; its start is by that host's clock.
  const double since = here ? start_time : ParseTime(sweep.created).value_or(0);
  const Result<WatchEnd> end = WatchSweep(
      api, {.sweep = id, .from_start = true, .executors_since = since, .executors_are_fixed = here},
      *progress, console.interrupt);
  if (!end.ok()) return Fail(console, end.error());
  if (*end == WatchEnd::kCannotStart) {
    return EndUnstartable(console, api, id,
                          "to train on other hosts, start a server with `attune serve` first");
  }
  if (*end == WatchEnd::kInterrupted) {
    console.err.Print(
        here ? "interrupted; run the same command again to resume from the newest checkpoint"
             : "the training continues on the server: `attune trial logs " + id +
                   "/0 -f` shows it, `attune sweep kill " + id + "` ends it");
    return ExitCode::kInterrupted;
  }

  const auto ended = api.Sweep(id);
  if (!ended.ok()) return Fail(console, ended.error());
  const auto ended_trial = api.Trial(trial);
  if (!ended_trial.ok()) return Fail(console, ended_trial.error());
  if (flags.output.json()) {
    console.out.Print(Dump(ended_trial->document, 2));
  } else {
    console.err.PrintLines(TrainingLines(*ended_trial, console.err.style()));
  }
  return ExitCodeOfSweep(*ended);
}

// The unfinished training of this data folder, or a new one.
Answer<rest::SweepDetail> StartOrResume(const SweepDocument& document, bool here, Console& console,
                                        Api& api) {
  if (here) {
    Result<Unfinished> unfinished = FindUnfinished(api, document, SameBy::kText);
    if (!unfinished.ok()) return unfinished.error();
    if (unfinished->same.has_value()) {
      console.err.Print("resuming " + unfinished->same->id + "/0");
      return *std::move(unfinished->same);
    }
  }
  auto created = api.CreateSweep(document);
  if (created.ok()) PrintWarnings(*created, console);
  return created;
}

ExitCode Train(const TrainFlags& flags, Console& console) {
  const double start_time = SecondsSince1970();
  flags.output.Apply(console);
  const Result<SweepDocument> document = MakeDocument(flags);
  if (!document.ok()) return Fail(console, document.error());
  const ServerChoice& choice = flags.server;
  Result<Endpoint> endpoint = ServerOf(choice);
  const bool no_server =
      !endpoint.ok() && endpoint.error().code == ErrorCode::kUnavailable && choice.server.empty();
  if (!endpoint.ok() && (!no_server || flags.detach)) return Fail(console, endpoint.error());

  const CheckedSweep checked =
      CheckSweep(*document, no_server ? ProgramCheck::kMustExist : ProgramCheck::kSkip);
  if (!checked.spec.has_value()) {
    for (const std::string& fault : checked.faults)
      console.err.Print("attune: " + RemoveDocumentPosition(fault));
    return ExitCode::kUsage;
  }

  // Without a server, trains in this process. The subscription makes Ctrl-C end the gang in order.
  std::unique_ptr<RunningServer> local_server;
  std::optional<Interrupt::Subscription> subscription;
  if (no_server) {
    subscription.emplace(console.interrupt, [] {});
    console.host.log_to(console.err, LogLevel::kWarning);
    Result<std::unique_ptr<RunningServer>> started =
        console.host.start_server({.data_dir = choice.data_dir, .rpc = false, .executor = true});
    if (!started.ok()) return Fail(console, started.error());
    local_server = *std::move(started);
    endpoint = local_server->endpoint();
    console.err.Print("no server runs on " + choice.data_dir.string() +
                      ": training on this host only\npage   " +
                      PageLink(endpoint->url, choice.data_dir, console.err));
  }

  Api api(*endpoint);
  const auto sweep = StartOrResume(*document, local_server != nullptr, console, api);
  if (!sweep.ok()) {
    return Fail(console, {sweep.error().code, RemoveDocumentPosition(sweep.error().message)});
  }
  const std::string trial = sweep->id + "/0";
  if (flags.detach) {
    return ShowAnswer(flags.output, console, sweep, [&](const rest::Sweep&) {
      console.out.Print(trial);
      console.err.Print("`attune trial logs " + trial + " -f` shows what it prints");
    });
  }
  return Follow(flags, *sweep, local_server != nullptr, start_time, console, api);
}

}  // namespace

void AddTrainCommand(CLI::App& app, Action& chosen) {
  AddCommand<TrainFlags>(app, chosen, "train",
                         "Train once, on one or more hosts, without a sweep file", Train);
}

}  // namespace attune::cli
