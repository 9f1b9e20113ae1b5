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

// What the command line asks for, once it is read.
using Action = std::function<ExitCode(Console&)>;

// Each adds a noun's verbs to `app`; the verb that a command line names sets `chosen`.
void AddRunVerb(CLI::App& app, Action& chosen);
void AddTrainVerb(CLI::App& app, Action& chosen);
void AddServeVerb(CLI::App& app, Action& chosen);
void AddExecutorVerbs(CLI::App& app, Action& chosen);  // executor itself, and list, drain, resume
void AddSweepVerbs(CLI::App& app, Action& chosen);
void AddTrialVerbs(CLI::App& app, Action& chosen);
void AddCheckpointVerbs(CLI::App& app, Action& chosen);
void AddAskVerbs(CLI::App& app, Action& chosen);  // ask, tell
void AddDbVerbs(CLI::App& app, Action& chosen);
void AddReplayVerb(CLI::App& app, Action& chosen);
void AddSimulateVerb(CLI::App& app, Action& chosen);
void AddSlurmVerbs(CLI::App& app, Action& chosen);
void AddTokenVerbs(CLI::App& app, Action& chosen);
void AddSecretVerbs(CLI::App& app, Action& chosen);
void AddLoginVerb(CLI::App& app, Action& chosen);
void AddDoctorVerb(CLI::App& app, Action& chosen);
void AddCompletionVerb(CLI::App& app, Action& chosen);
void AddVersionVerb(CLI::App& app, Action& chosen);

// Slots that a replay or a simulation may assume.
inline constexpr int kMaxSimulatedSlots = 100'000;

// How every verb writes.
struct OutputFlags {
  std::string format = "table";
  bool yaml = false;   // whether the verb has that format too
  bool fixed = false;  // whether it has none to choose from: it prints what others have written
  bool no_color = false;

  void AddTo(CLI::App& verb);
  void AddJson(CLI::App& verb);  // `--json` as well
  bool json() const { return format == "json"; }
  void Apply(Console& console) const;
};

// The flags of every verb that talks to a server.
struct ClientFlags {
  ServerChoice server;
  OutputFlags output;

  void AddTo(CLI::App& verb);
};

// The flags of a verb on one sweep.
struct SweepNameFlags : ClientFlags {
  std::string id;

  void AddTo(CLI::App& verb);
};

// The flags of a verb on one sweep, or on the newest where the command line names none.
struct SweepOrNewestFlags : ClientFlags {
  std::string id;  // empty: the newest; see SweepOrNewest

  void AddTo(CLI::App& verb);
};

// The flags of a verb on one trial.
struct TrialNameFlags : ClientFlags {
  std::vector<std::string> trial;  // for TrialName::Parse

  void AddTo(CLI::App& verb);
};

// Checks of an option's number, which refuse in one short sentence.
CLI::Validator PositiveNumber();
CLI::Validator NonNegativeNumber();

// `--interface`, of verbs that run an executor.
void AddInterface(CLI::App& verb, std::string& interface);

// `--shared-data`, likewise and of verbs that run a server.
void AddSharedData(CLI::App& verb, bool& shared_data);

// `--label`, of verbs that run an executor; the words as they stand there.
void AddLabels(CLI::App& verb, std::vector<std::string>& words);
// gpu=h100 and so on; kInvalid with the flag's name.
Result<Labels> ReadLabels(const std::vector<std::string>& words);

// `--min-free-disk`, `--min-free-memory` and `--max-rank-log`, likewise; the words as they stand
// there.
struct HostLimitFlags {
  std::string disk;
  std::string memory;
  std::string rank_log;

  void AddTo(CLI::App& verb);
  Result<HostLimits> Read() const;  // kInvalid with the flag's name
};

// The names of those of these flags that are given: "--interface, --label". Without an executor in
// the process they have no effect.
std::string NamesOfExecutorFlags(const std::string& interface,
                                 const std::vector<std::string>& labels,
                                 const HostLimitFlags& limits);

// Prints `attune: MESSAGE` and gives the code that belongs to the error.
ExitCode Fail(Console& console, const Error& error);

// Prints the document of an answer with `-o json`, and calls `show` without.
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

// The same for an answer that describes the effect of a request on `subject`.
template <class T>
ExitCode ShowEffect(const OutputFlags& output, Console& console, const std::string& subject,
                    const Answer<T>& answer) {
  return ShowAnswer(output, console, answer,
                    [&](const T& value) { console.err.Print(subject + ": " + value.effect); });
}

// FILE, or the same after -f: one of the two is needed, so that neither is marked as required.
void AddSweepFile(CLI::App& verb, std::string& file);

// The words of NAME=VALUE, in order: values that are numbers, booleans or quoted texts are those,
// all others texts. `flag` is for messages.
Result<Json> ReadAssignments(const std::vector<std::string>& words, const std::string& flag);

// Prints what the server finds risky in the file of a new sweep.
void PrintWarnings(const rest::SweepDetail& sweep, Console& console);

// The server that the flags and ATTUNE_TOKEN name; errors as of FindServer().
Result<Endpoint> ServerOf(ServerChoice choice);

// Finds the server and hands its API over; says what is wrong when there is none.
ExitCode WithServer(const ClientFlags& flags, Console& console,
                    const std::function<ExitCode(Api&)>& work);

// Declares the options of `Flags` on `verb`. If the command line ends with that verb, `chosen` is
// to call `run` with them.
template <class Flags, class Run>
void DefineVerb(CLI::App& verb, Action& chosen, Run run) {
  auto flags = std::make_shared<Flags>();
  flags->AddTo(verb);
  verb.callback([flags, run, &verb, &chosen] {
    if (!verb.get_subcommands().empty()) return;
    chosen = [flags, run](Console& console) { return run(*flags, console); };
  });
}

// Adds a verb to `parent`. `Flags` holds what its command line says, and `Flags::AddTo` declares
// its arguments and options: parsing, help, completion and man pages derive from that declaration.
template <class Flags>
void AddVerb(CLI::App& parent, Action& chosen, const char* name, const char* help,
             ExitCode (*run)(const Flags&, Console&)) {
  DefineVerb<Flags>(*parent.add_subcommand(name, help), chosen, run);
}

// The same for a verb that asks a server: its `Flags` are ClientFlags.
template <class Flags>
void AddVerb(CLI::App& parent, Action& chosen, const char* name, const char* help,
             ExitCode (*run)(const Flags&, Console&, Api&)) {
  DefineVerb<Flags>(
      *parent.add_subcommand(name, help), chosen, [run](const Flags& flags, Console& console) {
        return WithServer(flags, console, [&](Api& api) { return run(flags, console, api); });
      });
}

// The sweep named, or the newest one where none is.
Result<std::string> SweepOrNewest(Api& api, const std::string& id);

}  // namespace attune::cli
