#include "cli/verbs/completion.h"

#include <cstdlib>

#include "base/result.h"
#include "cli/completion/candidates.h"
#include "cli/completion/scripts.h"
#include "cli/completion/tree.h"
#include "cli/json.h"
#include "cli/verbs/verb.h"

namespace attune::cli {
namespace {

struct CompletionFlags {
  std::string shell;

  void AddTo(CLI::App& verb) {
    verb.add_option("SHELL", shell, "the shell")
        ->required()
        ->check(CLI::IsMember(Shells()))
        ->type_name("SHELL");
  }
};

ExitCode PrintScript(const CompletionFlags& flags, Console& console) {
  console.out.Write(CompletionScript(flags.shell));
  return ExitCode::kSuccess;
}

std::vector<Candidate> SweepsOf(ServerChoice choice) {
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
    console.out.Write(ToText(FindCandidates(app, {args.begin() + 1, args.end()}, SweepsOf)));
    return ExitCode::kSuccess;
  }
  if (args.front() == "__describe") {
    console.out.Print(Dump(DescribeTree(app), 1));
    return ExitCode::kSuccess;
  }
  return std::nullopt;
}

void AddCompletionVerb(CLI::App& app, Action& chosen) {
  AddVerb<CompletionFlags>(app, chosen, "completion",
                           "print a script that completes commands in a shell", PrintScript);
}

}  // namespace attune::cli
