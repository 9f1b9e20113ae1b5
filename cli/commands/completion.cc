#include "cli/commands/completion.h"

#include <cstdlib>

#include "base/result.h"
#include "cli/commands/command.h"
#include "cli/completion/candidates.h"
#include "cli/completion/scripts.h"
#include "cli/completion/tree.h"
#include "cli/json.h"

namespace attune::cli {
namespace {

struct CompletionFlags {
  std::string shell;

  void AddTo(CLI::App& command) {
    command.add_option("SHELL", shell, "Shell")
        ->required()
        ->check(CLI::IsMember(Shells()))
        ->type_name("SHELL");
  }
};

ExitCode PrintScript(const CompletionFlags& flags, Console& console) {
  console.out.Write(CompletionScript(flags.shell));
  return ExitCode::kSuccess;
}

// The sweeps of the server; empty if it does not answer.
std::vector<Candidate> ListSweepCandidates(ServerChoice choice) {
  const char* const named = std::getenv("ATTUNE_SERVER");
  if (choice.server.empty() && named != nullptr) choice.server = named;
  const Result<Endpoint> endpoint = ServerOf(std::move(choice));
  if (!endpoint.ok()) return {};
  Api api(*endpoint);
  const auto list = api.Sweeps();
  if (!list.ok()) return {};
  std::vector<Candidate> candidates;
  for (const rest::Sweep& sweep : list->sweeps)
    candidates.push_back({sweep.id, sweep.name + ", " + sweep.state});
  return candidates;
}

}  // namespace

std::optional<ExitCode> AnswerScript(const CLI::App& app, const std::vector<std::string>& args,
                                     Console& console) {
  if (args.empty()) return std::nullopt;
  if (args.front() == "__complete") {
    console.out.Write(
        ToText(FindCandidates(app, {args.begin() + 1, args.end()}, ListSweepCandidates)));
    return ExitCode::kSuccess;
  }
  if (args.front() == "__describe") {
    console.out.Print(Dump(DescribeTree(app), 1));
    return ExitCode::kSuccess;
  }
  return std::nullopt;
}

void AddCompletionCommand(CLI::App& app, Action& chosen) {
  AddCommand<CompletionFlags>(app, chosen, "completion", "Print a completion script for a shell",
                              PrintScript);
}

}  // namespace attune::cli
