#include "base/result.h"
#include "cli/joining.h"
#include "cli/text/numbers.h"
#include "cli/text/table.h"
#include "cli/text/width.h"
#include "cli/verbs/verb.h"

namespace attune::cli {
namespace {

constexpr double kTimeMax = 1e8;  // seconds, three years

struct ExecutorFlags {
  ExecutorOptions options;
  std::string memory;
  std::string copies;
  std::vector<std::string> labels;
  FreeFlags free_min;
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
  if (!flags.copies.empty()) {
    options.copies_bytes = ParseBytes(flags.copies);
    if (!options.copies_bytes.has_value()) {
      return Fail(console, {ErrorCode::kInvalid, "--copies: `" + flags.copies +
                                                     "` is not a size; write 512MiB or 16GiB"});
    }
  }
  const Result<Labels> labels = ReadLabels(flags.labels);
  if (!labels.ok()) return Fail(console, labels.error());
  options.labels = *labels;
  const Result<FreeLimits> free_min = flags.free_min.Read();
  if (!free_min.ok()) return Fail(console, free_min.error());
  options.free_min = *free_min;
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

// ---- those of a server ---------------------------------------------------------------------

// 2/4, of what there is; what a lost one has free is unknown.
std::string Use(const Json& executor, const std::string& what) {
  const int64_t all = WholeAt(executor, what);
  if (all == 0) return "none";
  const std::string used = TextAt(executor, "state") == "lost"
                               ? "?"
                               : std::to_string(all - WholeAt(executor, what + "_free"));
  return used + '/' + std::to_string(all);
}

std::string DiskFree(const Json& executor) {
  const std::optional<double> bytes = NumberOf(At(executor, "disk_free_bytes"));
  return bytes.has_value() ? FormatBytes(*bytes) : "";
}

std::string LabelsOf(const Json& executor) {
  std::string text;
  for (const auto& [name, value] : At(executor, "labels").items()) {
    text += (text.empty() ? "" : ",") + name + '=' +
            (value.is_string() ? value.get<std::string>() : "");
  }
  return Clean(text);
}

// s1/3 ranks 0-3, s2/0 rank 4
std::string Running(const Json& executor) {
  std::string text;
  for (const Json& part : At(executor, "running")) {
    const Json& ranks = At(part, "ranks");
    if (!ranks.is_array() || ranks.size() != 2) continue;
    const bool one = ranks[0] == ranks[1];
    text += (text.empty() ? "" : ", ") + TextAt(part, "sweep") + '/' +
            std::to_string(WholeAt(part, "trial")) + (one ? " rank " : " ranks ") + Dump(ranks[0]) +
            (one ? "" : '-' + Dump(ranks[1]));
  }
  return Clean(text);
}

std::string Heard(const Json& executor) {
  const std::optional<double> seconds = NumberOf(At(executor, "silent_seconds"));
  return seconds.has_value() ? FormatDuration(*seconds) + " ago" : "";
}

std::vector<std::string> ExecutorLines(const Json& executors, const Style& style, int width) {
  Table table({{"EXECUTOR"},
               {"STATE"},
               {"CPUS", /*right=*/true},
               {"GPUS", /*right=*/true},
               {"DISK FREE", /*right=*/true},
               {"ADDRESS"},
               {"HEARD", /*right=*/true},
               {"LABELS"},
               {"RUNNING"}});
  std::vector<std::string> closed;
  for (const Json& executor : executors) {
    const std::string name = Clean(TextAt(executor, "name"));
    const std::string state = TextAt(executor, "state");
    table.Add({name,
               {state, ColourOfState(state)},
               Use(executor, "cpus"),
               Use(executor, "gpus"),
               DiskFree(executor),
               Clean(TextAt(executor, "address")),
               Heard(executor),
               LabelsOf(executor),
               Running(executor)});
    if (const Json& drain = At(executor, "drain"); drain.is_object()) {
      const std::string reason = Clean(TextAt(drain, "reason"));
      closed.push_back(name + " is drained since " + TextAt(drain, "since") +
                       (reason.empty() ? "" : ": " + reason));
    }
    if (At(executor, "problem").is_string())
      closed.push_back(name + " is unwell: " + Clean(TextAt(executor, "problem")));
    if (const Json& aside = At(executor, "set_aside"); aside.is_object())
      closed.push_back(name + " is set aside until " + TextAt(aside, "until") + ": " +
                       Clean(TextAt(aside, "reason")));
  }
  std::vector<std::string> lines = table.Lines(style, width);
  if (!closed.empty()) lines.emplace_back();
  lines.insert(lines.end(), closed.begin(), closed.end());
  return lines;
}

ExitCode List(const ClientFlags& flags, Console& console, Api& api) {
  const Result<Json> executors = api.Executors();
  if (!executors.ok()) return Fail(console, executors.error());
  if (flags.output.json()) {
    console.out.Print(Dump({{"executors", *executors}}, 2));
  } else if (executors->empty()) {
    console.err.Print(
        "no executor has connected; start one with `attune executor --server "
        "HOST:PORT`");
  } else {
    console.out.PrintLines(ExecutorLines(*executors, console.out.style(), console.out.width()));
  }
  return ExitCode::kSuccess;
}

struct SteerFlags : ClientFlags {
  std::string name;
  std::string reason;
  bool now = false;
};

ExitCode Steer(const SteerFlags& flags, const std::string& verb, Console& console, Api& api) {
  Json body = Json::object();
  if (!flags.reason.empty()) body["reason"] = flags.reason;
  if (flags.now) body["now"] = true;
  return ShowEffect(flags.output, console, "executor " + flags.name,
                    api.SteerExecutor(flags.name, verb, body));
}

void AddList(CLI::App& noun, Action& chosen) {
  CLI::App* const verb =
      noun.add_subcommand("list", "all executors: what they have, and what runs where");
  auto flags = std::make_shared<ClientFlags>();
  flags->AddTo(*verb);
  verb->callback([flags, &chosen] {
    chosen = [flags](Console& console) {
      return WithServer(*flags, console, [&](Api& api) { return List(*flags, console, api); });
    };
  });
}

std::shared_ptr<SteerFlags> AddSteer(CLI::App& noun, Action& chosen, const std::string& name,
                                     const char* help, CLI::App*& verb) {
  verb = noun.add_subcommand(name, help);
  auto flags = std::make_shared<SteerFlags>();
  verb->add_option("NAME", flags->name, "the executor, as `executor list` has it")->required();
  flags->AddTo(*verb);
  verb->callback([flags, name, &chosen] {
    chosen = [flags, name](Console& console) {
      return WithServer(*flags, console,
                        [&](Api& api) { return Steer(*flags, name, console, api); });
    };
  });
  return flags;
}

// Of the noun itself, where no verb follows.
void AddRunner(CLI::App& noun, Action& chosen) {
  CLI::App* const verb = &noun;
  auto flags = std::make_shared<ExecutorFlags>();
  ExecutorOptions& options = flags->options;
  verb->add_option("--server", options.server, "the server's port for executors")
      ->type_name("HOST:PORT");
  verb->add_option("--join", flags->join.word, "the word that the server prints for executors")
      ->type_name("WORD");
  verb->add_option("--token-file", flags->join.file,
                   "file with that word (or ATTUNE_TOKEN, or DATA-DIR/join)")
      ->type_name("FILE");
  verb->add_option("--name", options.name, "unique among executors; the host's when absent");
  verb->add_option("--cpus", options.cpus, "to use; all when absent")
      ->check(PositiveNumber())
      ->type_name("N");
  verb->add_option("--gpus", options.gpus, "to use; all when absent")
      ->check(NonNegativeNumber())
      ->type_name("N");
  verb->add_option("--memory", flags->memory, "to use, such as 16GiB; all when absent")
      ->type_name("SIZE");
  verb->add_option("--copies", flags->copies,
                   "of other hosts' checkpoints that no trial needs now, to keep for the next; "
                   "10GiB when absent")
      ->type_name("SIZE");
  flags->free_min.AddTo(*verb);
  AddInterface(*verb, options.interface);
  verb->add_option("--give-up", options.give_up_seconds,
                   "without a word from the server, then end; wait for ever when absent")
      ->check(PositiveNumber())
      ->type_name("SECONDS");
  verb->add_option(
          "--time-left", options.seconds_left,
          "until a batch system or somebody else ends it: it takes no trial that could not "
          "save before")
      ->check(CLI::Range(1.0, kTimeMax))
      ->type_name("SECONDS");
  verb->add_option("--grace", options.grace_seconds,
                   "after Ctrl-C or SIGTERM, for what runs there to save a checkpoint at its next "
                   "report and leave; then it is torn down")
      ->check(CLI::Range(0.0, kTimeMax))
      ->type_name("SECONDS")
      ->capture_default_str();
  AddLabels(*verb, flags->labels);
  verb->add_option("--data-dir", options.data_dir, "logs and checkpoints of its trials")
      ->type_name("DIR")
      ->capture_default_str();
  verb->callback([flags, verb, &chosen] {
    if (!verb->get_subcommands().empty()) return;
    if (flags->options.server.empty()) throw CLI::RequiredError("--server");
    chosen = [flags](Console& console) { return RunExecutor(*flags, console); };
  });
}

}  // namespace

void AddExecutorVerbs(CLI::App& app, Action& chosen) {
  CLI::App* const noun = app.add_subcommand(
      "executor", "run trials on this machine for a server elsewhere; or see to those there are");
  noun->alias("node");
  noun->require_subcommand(0, 1);
  AddRunner(*noun, chosen);
  AddList(*noun, chosen);
  CLI::App* verb = nullptr;
  const auto drain = AddSteer(*noun, chosen, "drain",
                              "start nothing more there until it is resumed; what runs there "
                              "finishes",
                              verb);
  verb->add_option("--reason", drain->reason, "why, for people")->type_name("TEXT");
  verb->add_flag("--now", drain->now,
                 "what runs there saves a checkpoint at its next report and goes on elsewhere");
  AddSteer(*noun, chosen, "resume", "start trials there again", verb);
}

}  // namespace attune::cli
