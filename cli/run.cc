#include "cli/run.h"

#include <algorithm>
#include <sstream>

#include "cli/json.h"
#include "cli/verbs/verb.h"
#include "cli/version.h"

namespace attune::cli {
namespace {

constexpr char kAbout[] =
    "Attune tunes hyperparameters of distributed training.\n"
    "\n"
    "  attune run sweep.yaml            on this machine, here and now\n"
    "  attune serve --with-executor     a server that stays\n"
    "  attune sweep create sweep.yaml   and work for it\n"
    "  attune train -- ./train          one training, without a sweep file\n";

constexpr char kExitCodes[] =
    "Exit codes: 0 success, 1 failure, 2 usage or a wrong sweep file, 3 not found, 4 denied,\n"
    "5 the sweep failed or was killed, 6 timeout, 130 interrupted.";

// CLI11's messages are made of the option's and the verb's names; the verb's help is one step away.
ExitCode UsageError(const CLI::App& app, const CLI::ParseError& error, Console& console) {
  std::string verb = "attune";
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    verb += ' ' + at->get_name();
  }
  console.err.Print("attune: " + std::string(error.what()) + "\nsee `" + verb + " --help`");
  return ExitCode::kUsage;
}

}  // namespace

ExitCode Run(const std::vector<std::string>& args, Console& console) {
  CLI::App app(kAbout, "attune");
  app.footer(kExitCodes);
  app.set_version_flag("--version", std::string("attune ") + kVersion);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);

  Action chosen;
  AddRunVerb(app, chosen);
  AddTrainVerb(app, chosen);
  AddServeVerb(app, chosen);
  AddExecutorVerbs(app, chosen);
  AddSweepVerbs(app, chosen);
  AddTrialVerbs(app, chosen);
  AddCheckpointVerbs(app, chosen);
  AddAskVerbs(app, chosen);
  AddDbVerbs(app, chosen);
  AddReplayVerb(app, chosen);
  AddSimulateVerb(app, chosen);
  AddSlurmVerbs(app, chosen);
  AddVersionVerb(app, chosen);

  try {
    std::vector<std::string> reversed(args.rbegin(), args.rend());
    app.parse(std::move(reversed));
  } catch (const CLI::Success& request) {  // --help, --version
    std::ostringstream text;
    app.exit(request, text, text);
    console.out.Write(text.str());
    return ExitCode::kSuccess;
  } catch (const CLI::ParseError& error) {
    return UsageError(app, error, console);
  }
  try {
    return chosen(console);
  } catch (const Json::exception& error) {
    console.err.Print(std::string("attune: the server's answer cannot be read: ") + error.what() +
                      "\ncompare the versions with `attune version`");
    return ExitCode::kFailure;
  }
}

}  // namespace attune::cli
