#include <chrono>
#include <cstdlib>

#include "base/result.h"
#include "cli/check_sweep.h"
#include "cli/json.h"
#include "cli/page_link.h"
#include "cli/text/numbers.h"
#include "cli/verbs/cannot_start.h"
#include "cli/verbs/resume.h"
#include "cli/verbs/settings.h"
#include "cli/verbs/verb.h"
#include "cli/views/trial_view.h"
#include "cli/watch/clock.h"
#include "cli/watch/outcome.h"
#include "cli/watch/training.h"
#include "cli/watch/watch.h"

namespace attune::cli {
namespace {

// Where faults of the document are said to be, until they are said of the command line instead.
constexpr char kDocument[] = "train.json";

struct TrainFlags : ClientFlags {
  std::vector<std::string> command;
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

  void AddTo(CLI::App& verb);
};

void TrainFlags::AddTo(CLI::App& verb) {
  verb.footer(
      "attune train --workers 4 -- ./train\n"
      "Runs on the server's executors; where no server runs, on this machine.");
  verb.add_option("COMMAND", command, "the program and its arguments, behind --")->required();
  verb.add_option("--workers", workers, "how many train together")
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--gpus-per-worker", gpus_per_worker, "none when absent")->type_name("N");
  verb.add_option("--steps", steps, "at which it is complete; when absent the program ends itself")
      ->type_name("N");
  verb.add_option("-p,--parameter", parameters,
                  "NAME=VALUE of the program's configuration; repeat it for each")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  verb.add_option("--env", env,
                  "NAME=VALUE of its environment, or NAME alone for a secret of the server")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false);
  verb.add_option("--metric", metric, "by which its best checkpoint is known")
      ->type_name("NAME")
      ->capture_default_str();
  verb.add_option("--mode", mode, "whether that is to fall or to grow")
      ->check(CLI::IsMember({"min", "max"}))
      ->type_name("min|max")
      ->capture_default_str();
  verb.add_option("--name", name, "what it is called")->capture_default_str();
  verb.add_option("--set", settings, "any other key of the sweep file: failure.max_restarts=10")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  verb.add_flag("-d,--detach", detach, "print the trial's name and leave");
  ClientFlags::AddTo(verb);
}

// Adds NAME=VALUE to the environment of the sweep's program, and NAME alone to its secrets. The
// value that NAME has here stays here: the sweep would keep it.
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

// The sweep of one trial that the command line stands for.
Result<SweepDocument> Document(const TrainFlags& flags) {
  const Result<Json> values = ReadAssignments(flags.parameters, "-p");
  if (!values.ok()) return values.error();
  const Result<Json> patch = PatchOf(flags.settings);
  if (!patch.ok()) return patch.error();

  Json parameters = Json::object();
  for (const auto& [name, value] : values->items()) parameters[name] = {{"value", value}};
  Json sweep = {{"name", flags.name},
                {"command", flags.command},
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

// Without the place in a file that nobody has written.
std::string FaultOfCommandLine(const std::string& fault) {
  if (!fault.starts_with(kDocument)) return fault;
  const size_t space = fault.find(": ");
  return space == std::string::npos ? fault : fault.substr(space + 2);
}

// Follows the training to its end. `here`: on a server of this process, which began at `began`.
ExitCode Follow(const TrainFlags& flags, const rest::Sweep& sweep, bool here, double began,
                Console& console, Api& api) {
  const std::string& id = sweep.id;
  const TrialName trial{.sweep = id, .number = 0};
  const std::unique_ptr<Progress> progress =
      ShowTraining(api, trial, flags.output.json() ? console.err : console.out, console.err);
  // A training on another host's server is always a new one, and has begun by that host's clock.
  const double since = here ? began : ParseTime(sweep.created).value_or(0);
  const Result<WatchEnd> end = WatchSweep(
      api, {.sweep = id, .from_start = true, .executors_since = since, .executors_are_fixed = here},
      *progress, console.interrupt);
  if (!end.ok()) return Fail(console, end.error());
  if (*end == WatchEnd::kCannotStart) {
    return EndUnstartable(console, api, id,
                          "to train on other machines, start a server with `attune serve` first");
  }
  if (*end == WatchEnd::kInterrupted) {
    console.err.Print(here ? "interrupted; the same command goes on from its newest checkpoint"
                           : "the training goes on without this terminal: `attune trial logs " +
                                 id + "/0 -f` shows it, `attune sweep kill " + id + "` ends it");
    return ExitCode::kInterrupted;
  }

  const auto ended = api.Sweep(id);
  if (!ended.ok()) return Fail(console, ended.error());
  const auto last = api.Trial(trial);
  if (!last.ok()) return Fail(console, last.error());
  if (flags.output.json()) {
    console.out.Print(Dump(last->document, 2));
  } else {
    console.err.PrintLines(TrainingLines(*last, console.err.style()));
  }
  return ExitCodeOfSweep(*ended);
}

// The training that this folder has not finished, or a new one.
Answer<rest::SweepDetail> Begin(const SweepDocument& document, bool here, Console& console,
                                Api& api) {
  if (here) {
    Result<Unfinished> unfinished = FindUnfinished(api, document, SameBy::kText);
    if (!unfinished.ok()) return unfinished.error();
    if (unfinished->same.has_value()) {
      console.err.Print("continuing " + unfinished->same->id + "/0, which has not ended");
      return *std::move(unfinished->same);
    }
  }
  auto created = api.CreateSweep(document);
  if (created.ok()) PrintWarnings(*created, console);
  return created;
}

ExitCode Train(const TrainFlags& flags, Console& console) {
  const double began = SecondsSince1970();
  flags.output.Apply(console);
  const Result<SweepDocument> document = Document(flags);
  if (!document.ok()) return Fail(console, document.error());
  const ServerChoice& choice = flags.server;
  Result<Endpoint> endpoint = ServerOf(choice);
  const bool no_server =
      !endpoint.ok() && endpoint.error().code == ErrorCode::kUnavailable && choice.server.empty();
  if (!endpoint.ok() && (!no_server || flags.detach)) return Fail(console, endpoint.error());

  const CheckedSweep checked =
      CheckSweep(*document, no_server ? ProgramCheck::kIsThere : ProgramCheck::kNone);
  if (!checked.spec.has_value()) {
    for (const std::string& fault : checked.faults)
      console.err.Print("attune: " + FaultOfCommandLine(fault));
    return ExitCode::kUsage;
  }

  // Without a server, on this machine alone. Whatever comes then, the gang is torn down in order.
  std::unique_ptr<RunningServer> own;
  std::optional<Interrupt::Subscription> heard;
  if (no_server) {
    heard.emplace(console.interrupt, [] {});
    console.host.log_to(console.err, LogLevel::kWarning);
    Result<std::unique_ptr<RunningServer>> started =
        console.host.start_server({.data_dir = choice.data_dir, .rpc = false, .executor = true});
    if (!started.ok()) return Fail(console, started.error());
    own = *std::move(started);
    endpoint = own->endpoint();
    console.err.Print("no server runs on " + choice.data_dir.string() +
                      ": training on this machine alone\npage   " +
                      PageLink(endpoint->url, choice.data_dir, console.err));
  }

  Api api(*endpoint);
  const auto sweep = Begin(*document, own != nullptr, console, api);
  if (!sweep.ok()) {
    return Fail(console, {sweep.error().code, FaultOfCommandLine(sweep.error().message)});
  }
  const std::string trial = sweep->id + "/0";
  if (flags.detach) {
    return ShowAnswer(flags.output, console, sweep, [&](const rest::Sweep&) {
      console.out.Print(trial);
      console.err.Print("`attune trial logs " + trial + " -f` shows what it prints");
    });
  }
  return Follow(flags, *sweep, own != nullptr, began, console, api);
}

}  // namespace

void AddTrainVerb(CLI::App& app, Action& chosen) {
  AddVerb<TrainFlags>(app, chosen, "train",
                      "train once, on one or many machines, without a sweep file", Train);
}

}  // namespace attune::cli
