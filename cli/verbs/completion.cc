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

std::vector<Candidate> SweepsOf(ServerChoice choice) {
  const char* const named = std::getenv("ATTUNE_SERVER");
  if (choice.server.empty() && named != nullptr) choice.server = named;
  const Result<Endpoint> endpoint = ServerOf(std::move(choice));
  if (!endpoint.ok()) return {};
  Api api(*endpoint);
  const Result<Json> sweeps = api.Sweeps();
  if (!sweeps.ok()) return {};
  std::vector<Candidate> candidates;
  for (const Json& sweep : *sweeps)
    candidates.push_back(
        {TextAt(sweep, "id"), TextAt(sweep, "name") + ", " + TextAt(sweep, "state")});
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
  CLI::App* const verb =
      app.add_subcommand("completion", "print a script that completes commands in a shell");
  auto shell = std::make_shared<std::string>();
  verb->add_option("SHELL", *shell, "the shell")
      ->required()
      ->check(CLI::IsMember(Shells()))
      ->type_name("SHELL");
  verb->callback([shell, &chosen] {
    chosen = [shell](Console& console) {
      console.out.Write(CompletionScript(*shell));
      return ExitCode::kSuccess;
    };
  });
}

}  // namespace attune::cli
