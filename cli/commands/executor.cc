#include "base/result.h"
#include "cli/commands/command.h"
#include "cli/joining.h"
#include "cli/text/numbers.h"
#include "cli/text/table.h"
#include "cli/text/width.h"
#include "cli/views/fleet_view.h"

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

  void AddTo(CLI::App& command);
};

void ExecutorFlags::AddTo(CLI::App& command) {
  command.add_option("--server", options.server, "Server's address for executors")
      ->type_name("HOST:PORT");
  command
      .add_option("--token-file", join.file,
                  "Copy of the server's DATA-DIR/join, or - for stdin (default: ATTUNE_TOKEN, or "
                  "DATA-DIR/join)")
      ->type_name("FILE");
  command.add_option("--name", options.name, "Unique name (default: the host name)")
      ->type_name("NAME");
  command.add_option("--cpus", options.cpus, "CPUs to use (default: all)")
      ->check(PositiveNumber())
      ->type_name("N");
  command.add_option("--gpus", options.gpus, "GPUs to use (default: all)")
      ->check(NonNegativeNumber())
      ->type_name("N");
  command.add_option("--memory", memory, "Memory to use, such as 16GiB (default: all)")
      ->type_name("SIZE");
  command
      .add_option("--copies", copies,
                  "Space for other hosts' checkpoints that no trial needs now (default: 10GiB)")
      ->type_name("SIZE");
  limits.AddTo(command);
  AddInterface(command, options.interface);
  command
      .add_option("--give-up", options.give_up_seconds,
                  "Exit after this time without contact with the server (default: never)")
      ->check(PositiveNumber())
      ->type_name("SECONDS");
  command
      .add_option("--time-left", options.seconds_left,
                  "Time until a batch system ends the executor; trials leave before that")
      ->check(CLI::Range(1.0, kTimeMax))
      ->type_name("SECONDS");
  command
      .add_option("--grace", options.grace_seconds,
                  "Time for trials to save and leave after Ctrl-C or SIGTERM; 0: none")
      ->check(CLI::Range(0.0, kTimeMax))
      ->type_name("SECONDS")
      ->capture_default_str();
  AddLabels(command, labels);
  AddSharedData(command, options.shared_data);
  command.add_flag("--temporary-data", options.temporary_data,
                   "The data folder is deleted with the executor, as in a container: while it "
                   "leaves, it waits until others have fetched its checkpoints");
  command
      .add_option("--data-dir", options.data_dir, "Folder for logs and checkpoints of its trials")
      ->type_name("DIR")
      ->capture_default_str();
  // `attune executor list` and its siblings need no --server here.
  command.parse_complete_callback([this, &command] {
    if (command.get_subcommands().empty() && options.server.empty())
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

// ---- Commands that ask a server ----------------------------------------------------------------

// Used and total, such as "2/4". The use of a lost executor is unknown.
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

// Adds a line for each reason why nothing starts on the executor, or why its uploads are paused.
void AddObstacles(const rest::Executor& executor, std::vector<std::string>& lines) {
  const std::string name = Clean(executor.name);
  if (const auto& drain = executor.drain; drain.has_value())
    lines.push_back(name + " has been drained since " + drain->since +
                    (drain->reason.empty() ? "" : ": " + Clean(drain->reason)));
  if (executor.health_problem.has_value())
    lines.push_back(name + " is unhealthy: " + Clean(*executor.health_problem));
  if (const auto& quarantine = executor.quarantine; quarantine.has_value())
    lines.push_back(name + " is quarantined until " + quarantine->until + ": " +
                    Clean(quarantine->reason));
  if (!executor.storage_problem.empty())
    lines.push_back("the uploads of " + name + " are paused: " + Clean(executor.storage_problem));
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

ExitCode Occupancy(const ClientFlags& flags, Console& console, Api& api) {
  return ShowAnswer(flags.output, console, api.Occupancies(), [&](const rest::OccupancyList& list) {
    if (list.executors.empty()) return console.err.Print("no executor has connected");
    console.out.PrintLines(OccupancyTable(list, console.out.style(), console.out.width()));
  });
}

struct ExecutorNameFlags : ClientFlags {
  std::string name;

  void AddTo(CLI::App& command) {
    command.add_option("NAME", name, "Executor, as in `attune executor list`")->required();
    ClientFlags::AddTo(command);
  }
};

struct ExecutorDrainFlags : ExecutorNameFlags {
  std::string reason;
  bool now = false;

  void AddTo(CLI::App& command) {
    ExecutorNameFlags::AddTo(command);
    command.add_option("--reason", reason, "Reason to show to others")->type_name("TEXT");
    command.add_flag(
        "--now", now,
        "Move running trials: they save a checkpoint at their next report and continue elsewhere");
  }
};

ExitCode Steer(const ExecutorNameFlags& flags, const std::string& action,
               const rest::DrainRequest& body, Console& console, Api& api) {
  return ShowEffect(flags.output, console, "executor " + flags.name,
                    api.SteerExecutor(flags.name, action, rest::ToJson(body)));
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

void AddExecutorCommands(CLI::App& app, Action& chosen) {
  CLI::App& noun =
      *app.add_subcommand("executor", "Run trials on this host for a server, or manage executors");
  noun.alias("node");
  noun.require_subcommand(0, 1);
  DefineCommand<ExecutorFlags>(noun, chosen, RunExecutor);
  AddCommand<ClientFlags>(noun, chosen, "list", "List executors and their running trials", List);
  AddCommand<ClientFlags>(noun, chosen, "occupancy", "Show how busy executors and their GPUs were",
                          Occupancy);
  AddCommand<ExecutorDrainFlags>(noun, chosen, "drain", "Start no more trials on an executor",
                                 Drain);
  AddCommand<ExecutorNameFlags>(noun, chosen, "resume", "Start trials on an executor again",
                                Resume);
}

}  // namespace attune::cli
