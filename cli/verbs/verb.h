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
  bool json() const { return format == "json"; }
  void Apply(Console& console) const;
};

// The flags of every verb that talks to a server.
struct ClientFlags {
  ServerChoice server;
  OutputFlags output;

  void AddTo(CLI::App& verb);
};

// Checks of an option's number, which refuse in one short sentence.
CLI::Validator PositiveNumber();
CLI::Validator NonNegativeNumber();

// `--interface`, of verbs that run an executor.
void AddInterface(CLI::App& verb, std::string& interface);

// `--label`, likewise; the words as they stand there.
void AddLabels(CLI::App& verb, std::vector<std::string>& words);
// gpu=h100 and so on; kInvalid with the flag's name.
Result<Labels> ReadLabels(const std::vector<std::string>& words);

// `--min-free-disk` and `--min-free-memory`, likewise; the words as they stand there.
struct FreeFlags {
  std::string disk;
  std::string memory;

  void AddTo(CLI::App& verb);
  bool empty() const { return disk.empty() && memory.empty(); }
  Result<FreeLimits> Read() const;  // kInvalid with the flag's name
};

// Prints `attune: MESSAGE` and gives the code that belongs to the error.
ExitCode Fail(Console& console, const Error& error);

// What steering `subject` led to: the server's answer, or its sentence on stderr.
ExitCode ShowEffect(const OutputFlags& output, Console& console, const std::string& subject,
                    const Result<Json>& answer);

// FILE, or the same after -f: one of the two is needed, so that neither is marked as required.
void AddSweepFile(CLI::App& verb, std::string& file);

// The words of NAME=VALUE, in order: values that are numbers, booleans or quoted texts are those,
// all others texts. `flag` is for messages.
Result<Json> ReadAssignments(const std::vector<std::string>& words, const std::string& flag);

// The server that the flags and ATTUNE_TOKEN name; errors as of FindServer().
Result<Endpoint> ServerOf(ServerChoice choice);

// Finds the server and hands its API over; says what is wrong when there is none.
ExitCode WithServer(const ClientFlags& flags, Console& console,
                    const std::function<ExitCode(Api&)>& work);

// The sweep named, or the newest one where none is.
Result<std::string> SweepOrNewest(Api& api, const std::string& id);

}  // namespace attune::cli
