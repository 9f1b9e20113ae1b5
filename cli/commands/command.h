#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/client/api.h"
#include "cli/client/endpoint.h"
#include "cli/exit_code.h"
#include "cli/run.h"

namespace attune::cli {

// Runs the command that the command line names.
using Action = std::function<ExitCode(Console&)>;

// Each function adds the commands of a noun to `app`. Parsing a command line sets `chosen` to the
// named command.
void AddRunCommand(CLI::App& app, Action& chosen);
void AddTrainCommand(CLI::App& app, Action& chosen);
void AddServeCommand(CLI::App& app, Action& chosen);
void AddExecutorCommands(CLI::App& app,
                         Action& chosen);  // executor, and its list, occupancy, …
void AddQueueCommand(CLI::App& app, Action& chosen);
void AddSweepCommands(CLI::App& app, Action& chosen);
void AddTrialCommands(CLI::App& app, Action& chosen);
void AddCheckpointCommands(CLI::App& app, Action& chosen);
void AddAskCommands(CLI::App& app, Action& chosen);  // ask, tell
void AddDbCommands(CLI::App& app, Action& chosen);
void AddReplayCommand(CLI::App& app, Action& chosen);
void AddReportCommand(CLI::App& app, Action& chosen);
void AddSimulateCommand(CLI::App& app, Action& chosen);
void AddSlurmCommands(CLI::App& app, Action& chosen);
void AddKubernetesCommands(CLI::App& app, Action& chosen);
void AddTokenCommands(CLI::App& app, Action& chosen);
void AddSecretCommands(CLI::App& app, Action& chosen);
void AddLoginCommand(CLI::App& app, Action& chosen);
void AddDoctorCommand(CLI::App& app, Action& chosen);
void AddCompletionCommand(CLI::App& app, Action& chosen);
void AddVersionCommand(CLI::App& app, Action& chosen);

// Maximum number of slots of a replay or simulation.
inline constexpr int kMaxSimulatedSlots = 100'000;

// The output options of a command.
struct OutputFlags {
  std::string format = "table";
  bool yaml = false;   // whether the command also has this format
  bool fixed = false;  // whether the command has no --output, for example because it prints logs
  bool no_color = false;

  void AddTo(CLI::App& command);
  void AddJson(CLI::App& command);  // adds --json
  bool json() const { return format == "json"; }
  void Apply(Console& console) const;
};

// The options of a command that talks to a server.
struct ClientFlags {
  ServerChoice server;
  OutputFlags output;

  void AddTo(CLI::App& command);
};

// The options of a command on one sweep.
struct SweepNameFlags : ClientFlags {
  std::string id;

  void AddTo(CLI::App& command);
};

// The options of a command on one sweep, by default the newest.
struct SweepOrNewestFlags : ClientFlags {
  std::string id;  // empty: the newest; see SweepOrNewest

  void AddTo(CLI::App& command);
};

// The options of a command on one trial.
struct TrialNameFlags : ClientFlags {
  std::vector<std::string> trial;  // for TrialName::Parse

  void AddTo(CLI::App& command);
};

// Validators for numbers, with a short message.
CLI::Validator PositiveNumber();
CLI::Validator NonNegativeNumber();

// Adds `--interface`, for commands that run an executor.
void AddInterface(CLI::App& command, std::string& interface);

// Adds `--shared-data`, for commands that run an executor or a server.
void AddSharedData(CLI::App& command, bool& shared_data);

// Adds `--label`, for commands that run an executor. `words` get its unparsed values.
void AddLabels(CLI::App& command, std::vector<std::string>& words);
// Parses labels such as gpu=h100. kInvalid names the flag.
Result<Labels> ReadLabels(const std::vector<std::string>& words);

// `--min-free-disk`, `--min-free-memory` and `--max-rank-log`, for commands that run an executor.
// Members are the unparsed values.
struct HostLimitFlags {
  std::string disk;
  std::string memory;
  std::string rank_log;

  void AddTo(CLI::App& command);
  Result<HostLimits> Read() const;  // kInvalid names the flag
};

// The names of the given flags, such as "--interface, --label". They have no effect without an
// executor in the process.
std::string NamesOfExecutorFlags(const std::string& interface,
                                 const std::vector<std::string>& labels,
                                 const HostLimitFlags& limits);

// Prints `attune: MESSAGE` and returns the exit code of the error.
ExitCode Fail(Console& console, const Error& error);

// Prints the JSON of an answer with `-o json`; otherwise calls `show`.
template <class T, class Show>
ExitCode ShowAnswer(const OutputFlags& output, Console& console, const Answer<T>& answer,
                    Show show) {
  if (!answer.ok()) return Fail(console, answer.error());
  if (output.json()) {
    console.out.Print(Dump(answer->document, 2));
  } else {
    show(*answer);
  }
  return ExitCode::kSuccess;
}

// Prints the JSON of an answer with `-o json`; otherwise its effect on `subject`.
template <class T>
ExitCode ShowEffect(const OutputFlags& output, Console& console, const std::string& subject,
                    const Answer<T>& answer) {
  return ShowAnswer(output, console, answer,
                    [&](const T& value) { console.err.Print(subject + ": " + value.effect); });
}

// Adds FILE and -f FILE. Exactly one is required, so neither is marked as required.
void AddSweepFile(CLI::App& command, std::string& file);

// Parses words NAME=VALUE, in order. Values that are numbers, booleans or quoted strings keep their
// type; all others are strings. `flag` is for messages.
Result<Json> ReadAssignments(const std::vector<std::string>& words, const std::string& flag);

// Prints the server's warnings about the file of a new sweep.
void PrintWarnings(const rest::SweepDetail& sweep, Console& console);

// The server that the flags and ATTUNE_TOKEN name. Errors are those of FindServer().
Result<Endpoint> ServerOf(ServerChoice choice);

// Finds the server and calls `work` with its API; prints the error if there is none.
ExitCode WithServer(const ClientFlags& flags, Console& console,
                    const std::function<ExitCode(Api&)>& work);

// Declares the options of `Flags` on `command`. If the command line names that
// command, sets `chosen` to call `run` with them.
template <class Flags, class Run>
void DefineCommand(CLI::App& command, Action& chosen, Run run) {
  auto flags = std::make_shared<Flags>();
  flags->AddTo(command);
  command.callback([flags, run, &command, &chosen] {
    if (!command.get_subcommands().empty()) return;
    chosen = [flags, run](Console& console) { return run(*flags, console); };
  });
}

// Adds a command to `parent`. `Flags` holds its arguments and options, and `Flags::AddTo` declares
// them. Parsing, help, completion and man pages derive from that declaration.
template <class Flags>
void AddCommand(CLI::App& parent, Action& chosen, const char* name, const char* help,
                ExitCode (*run)(const Flags&, Console&)) {
  DefineCommand<Flags>(*parent.add_subcommand(name, help), chosen, run);
}

// Adds a command that asks a server. Its `Flags` derive from ClientFlags.
template <class Flags>
void AddCommand(CLI::App& parent, Action& chosen, const char* name, const char* help,
                ExitCode (*run)(const Flags&, Console&, Api&)) {
  DefineCommand<Flags>(
      *parent.add_subcommand(name, help), chosen, [run](const Flags& flags, Console& console) {
        return WithServer(flags, console, [&](Api& api) { return run(flags, console, api); });
      });
}

// `id` or, if it is empty, the id of the newest sweep.
Result<std::string> SweepOrNewest(Api& api, const std::string& id);

}  // namespace attune::cli
