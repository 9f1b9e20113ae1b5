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
  HostLimitFlags limits;
  JoinSource join;

  void AddTo(CLI::App& verb);
};

void ExecutorFlags::AddTo(CLI::App& verb) {
  verb.add_option("--server", options.server, "the server's port for executors")
      ->type_name("HOST:PORT");
  verb.add_option(
          "--token-file", join.file,
          "a copy of the server's DATA-DIR/join, or - for standard input (or ATTUNE_TOKEN, or this "
          "DATA-DIR/join)")
      ->type_name("FILE");
  verb.add_option("--name", options.name, "unique among executors; the host's when absent");
  verb.add_option("--cpus", options.cpus, "to use; all when absent")
      ->check(PositiveNumber())
      ->type_name("N");
  verb.add_option("--gpus", options.gpus, "to use; all when absent")
      ->check(NonNegativeNumber())
      ->type_name("N");
  verb.add_option("--memory", memory, "to use, such as 16GiB; all when absent")->type_name("SIZE");
  verb.add_option("--copies", copies,
                  "of other hosts' checkpoints that no trial needs now, to keep for the next; "
                  "10GiB when absent")
      ->type_name("SIZE");
  limits.AddTo(verb);
  AddInterface(verb, options.interface);
  verb.add_option("--give-up", options.give_up_seconds,
                  "without a word from the server, then end; wait for ever when absent")
      ->check(PositiveNumber())
      ->type_name("SECONDS");
  verb.add_option("--time-left", options.seconds_left,
                  "until a batch system or somebody else ends it: it takes no trial that could not "
                  "save before")
      ->check(CLI::Range(1.0, kTimeMax))
      ->type_name("SECONDS");
  verb.add_option("--grace", options.grace_seconds,
                  "after Ctrl-C or SIGTERM, for what runs there to save a checkpoint at its next "
                  "report and leave; then it is torn down")
      ->check(CLI::Range(0.0, kTimeMax))
      ->type_name("SECONDS")
      ->capture_default_str();
  AddLabels(verb, labels);
  AddSharedData(verb, options.shared_data);
  verb.add_option("--data-dir", options.data_dir, "logs and checkpoints of its trials")
      ->type_name("DIR")
      ->capture_default_str();
  // A verb may follow instead.
  verb.parse_complete_callback([this, &verb] {
    if (verb.get_subcommands().empty() && options.server.empty())
      throw CLI::RequiredError("--server");
  });
}

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
  const Result<HostLimits> limits = flags.limits.Read();
  if (!limits.ok()) return Fail(console, limits.error());
  options.limits = *limits;
  JoinSource source = flags.join;
  source.data_dir = options.data_dir;
  if (const char* token = std::getenv("ATTUNE_TOKEN"); token != nullptr) source.environment = token;
  const Result<tls::Join> join = FindJoin(source, options.server);
  if (!join.ok()) return Fail(console, join.error());
  options.token = join->token;
  options.fingerprint = join->fingerprint;
  options.server_dir = ServerFolderOf(source);
  console.host.log_to(console.err, LogLevel::kInfo);
  const Status ran = console.host.run_executor(options, console.interrupt);
  if (!ran.ok()) return Fail(console, ran.error());
  return ExitCode::kSuccess;
}

// ---- Verbs that ask a server ----------------------------------------------------------------

// "2/4": used and all. The use of a lost executor is unknown.
std::string UseText(const rest::Executor& executor, int64_t all, int64_t free) {
  if (all == 0) return "none";
  return (executor.state == "lost" ? "?" : std::to_string(all - free)) + '/' + std::to_string(all);
}

std::string LabelsText(const rest::Executor& executor) {
  std::string text;
  for (const auto& [name, value] : executor.labels)
    text += (text.empty() ? "" : ",") + name + '=' + value;
  return Clean(text);
}

// s1/3 ranks 0-3, s2/0 rank 4
std::string RunningText(const rest::Executor& executor) {
  std::vector<std::string> parts;
  for (const rest::RunningPart& part : executor.running) {
    if (part.ranks.size() != 2) continue;
    const auto first = std::to_string(part.ranks[0]);
    const auto last = std::to_string(part.ranks[1]);
    parts.push_back(part.sweep + '/' + std::to_string(part.trial) +
                    (first == last ? " rank " + first : " ranks " + first + '-' + last));
  }
  return Clean(JoinWithCommas(parts));
}

// Why nothing starts on it, a line for each reason.
void AddObstacles(const rest::Executor& executor, std::vector<std::string>& lines) {
  const std::string name = Clean(executor.name);
  if (const auto& drain = executor.drain; drain.has_value())
    lines.push_back(name + " is drained since " + drain->since +
                    (drain->reason.empty() ? "" : ": " + Clean(drain->reason)));
  if (executor.health_problem.has_value())
    lines.push_back(name + " is unhealthy: " + Clean(*executor.health_problem));
  if (const auto& quarantine = executor.quarantine; quarantine.has_value())
    lines.push_back(name + " is quarantined until " + quarantine->until + ": " +
                    Clean(quarantine->reason));
}

std::vector<std::string> ExecutorLines(const std::vector<rest::Executor>& executors,
                                       const Style& style, int width) {
  Table table({{"EXECUTOR"},
               {"STATE"},
               {"CPUS", /*right=*/true},
               {"GPUS", /*right=*/true},
               {"DISK FREE", /*right=*/true},
               {"ADDRESS"},
               {"HEARTBEAT", /*right=*/true},
               {"LABELS"},
               {"RUNNING"}});
  std::vector<std::string> obstacles;
  for (const rest::Executor& executor : executors) {
    const auto& disk = executor.disk_free_bytes;
    const auto& seconds = executor.seconds_since_heartbeat;
    table.Add({Clean(executor.name),
               {executor.state, ColourOfState(executor.state)},
               UseText(executor, executor.cpus, executor.cpus_free),
               UseText(executor, executor.gpus, executor.gpus_free),
               disk.has_value() ? FormatBytes(static_cast<double>(*disk)) : "",
               Clean(executor.address),
               seconds.has_value() ? FormatDuration(*seconds) + " ago" : "",
               LabelsText(executor),
               RunningText(executor)});
    AddObstacles(executor, obstacles);
  }
  std::vector<std::string> lines = table.Lines(style, width);
  if (!obstacles.empty()) lines.emplace_back();
  lines.insert(lines.end(), obstacles.begin(), obstacles.end());
  return lines;
}

ExitCode List(const ClientFlags& flags, Console& console, Api& api) {
  return ShowAnswer(flags.output, console, api.Executors(), [&](const rest::ExecutorList& list) {
    if (list.executors.empty()) {
      console.err.Print(
          "no executor has connected; start one with `attune executor --server HOST:PORT`");
    } else {
      console.out.PrintLines(
          ExecutorLines(list.executors, console.out.style(), console.out.width()));
    }
  });
}

struct ExecutorNameFlags : ClientFlags {
  std::string name;

  void AddTo(CLI::App& verb) {
    verb.add_option("NAME", name, "the executor, as `executor list` has it")->required();
    ClientFlags::AddTo(verb);
  }
};

struct ExecutorDrainFlags : ExecutorNameFlags {
  std::string reason;
  bool now = false;

  void AddTo(CLI::App& verb) {
    ExecutorNameFlags::AddTo(verb);
    verb.add_option("--reason", reason, "why, for people")->type_name("TEXT");
    verb.add_flag("--now", now,
                  "what runs there saves a checkpoint at its next report and goes on elsewhere");
  }
};

ExitCode Steer(const ExecutorNameFlags& flags, const std::string& verb,
               const rest::DrainRequest& body, Console& console, Api& api) {
  return ShowEffect(flags.output, console, "executor " + flags.name,
                    api.SteerExecutor(flags.name, verb, rest::ToJson(body)));
}

ExitCode Drain(const ExecutorDrainFlags& flags, Console& console, Api& api) {
  rest::DrainRequest body{.reason = OmitIfEmpty(flags.reason)};
  if (flags.now) body.now = true;
  return Steer(flags, "drain", body, console, api);
}

ExitCode Resume(const ExecutorNameFlags& flags, Console& console, Api& api) {
  return Steer(flags, "resume", {}, console, api);
}

}  // namespace

void AddExecutorVerbs(CLI::App& app, Action& chosen) {
  CLI::App& noun = *app.add_subcommand(
      "executor", "run trials on this machine for a server elsewhere; or see to those there are");
  noun.alias("node");
  noun.require_subcommand(0, 1);
  DefineVerb<ExecutorFlags>(noun, chosen, RunExecutor);
  AddVerb<ClientFlags>(noun, chosen, "list", "all executors: what they have, and what runs where",
                       List);
  AddVerb<ExecutorDrainFlags>(
      noun, chosen, "drain",
      "start nothing more there until it is resumed; what runs there finishes", Drain);
  AddVerb<ExecutorNameFlags>(noun, chosen, "resume", "start trials there again", Resume);
}

}  // namespace attune::cli
