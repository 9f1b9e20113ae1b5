#include "cli/run.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/version.h"
#include "cli/commands/command.h"
#include "cli/commands/completion.h"
#include "sweepfile/suggest.h"

namespace attune::cli {
namespace {

constexpr char kAbout[] =
    "Attune tunes hyperparameters of distributed training.\n"
    "\n"
    "  attune run sweep.yaml            run a sweep on this host\n"
    "  attune serve --with-executor     start a server\n"
    "  attune sweep create sweep.yaml   create a sweep on the server\n"
    "  attune train -- ./train          train once, without a sweep file\n";

constexpr char kExitCodes[] =
    "Exit codes: 0 success, 1 failure, 2 wrong usage or sweep file, 3 not found, 4 access denied,\n"
    "5 sweep failed or was killed, 6 timed out, 130 interrupted.";

// The program and the commands that the command line names, outermost first.
std::vector<const CLI::App*> CommandChain(const CLI::App& app) {
  std::vector<const CLI::App*> chain = {&app};
  while (!chain.back()->get_subcommands().empty()) {
    chain.push_back(chain.back()->get_subcommands().front());
  }
  return chain;
}

// "attune sweep create"
std::string CommandLineOf(const std::vector<const CLI::App*>& chain) {
  std::string words;
  for (const CLI::App* app : chain) words += (words.empty() ? "" : " ") + app->get_name();
  return words;
}

// The option or command of `app` with the most similar name; empty if none is similar.
std::string SuggestFor(const std::string& word, const CLI::App& app) {
  std::vector<std::string> known;
  if (!word.starts_with("--")) {
    for (const CLI::App* command : app.get_subcommands(nullptr))
      known.push_back(command->get_name());
    return sweepfile::Suggest(word, known);
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back(name);
  }
  const std::string name = sweepfile::Suggest(word.substr(2, word.find('=') - 2), known);
  return name.empty() ? "" : "--" + name;
}

// A message about the words that no command takes; empty if there are none.
std::string UnknownArguments(const std::vector<const CLI::App*>& chain) {
  std::string words;
  for (const CLI::App* app : chain) {
    for (const std::string& word : app->remaining()) {
      const std::string suggestion = SuggestFor(word, *app);
      words += (words.empty() ? "unknown argument `" : ", `") + word + '`';
      if (!suggestion.empty()) words += " (did you mean `" + suggestion + "`?)";
    }
  }
  return words;
}

// Says why a command line is wrong, in CLI11's words if there is no better message.
std::string DescribeUsageError(const std::vector<const CLI::App*>& chain,
                               const CLI::ParseError& error) {
  const CLI::App& last = *chain.back();
  const std::string unexpected = UnknownArguments(chain);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) return unexpected;
  if (dynamic_cast<const CLI::RequiredError*>(&error) == nullptr) return error.what();
  for (const CLI::Option* option : last.get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    const std::string positional = option->get_name(/*positional=*/true);
    return (positional.empty() ? option->get_name() : positional) + " is required";
  }
  const std::vector<std::string> words = last.remaining();
  if (words.empty() || words.front().starts_with('-'))
    return unexpected.empty() ? error.what() : unexpected;
  const std::string& word = words.front();
  const std::string suggestion = SuggestFor(word, last);
  return "unknown command `" + word + '`' +
         (chain.size() > 1 ? " for `" + CommandLineOf(chain) + '`' : "") +
         (suggestion.empty() ? "" : "; did you mean `" + suggestion + "`?");
}

ExitCode UsageError(const CLI::App& app, const CLI::ParseError& error, Console& console) {
  const std::vector<const CLI::App*> chain = CommandChain(app);
  console.err.Print("attune: " + DescribeUsageError(chain, error) + "\nsee `" +
                    CommandLineOf(chain) + " --help`");
  return ExitCode::kUsage;
}

// Prints the error. If the working directory was deleted, names that as the cause, because no
// relative path can be resolved then.
ExitCode FailWithFileSystemError(const std::filesystem::filesystem_error& error, Console& console) {
  std::error_code lost;
  const std::filesystem::path working_directory = std::filesystem::current_path(lost);
  const std::string path = error.path1().string();
  console.err.Print("attune: " +
                    (lost ? "the working directory is not accessible (" + lost.message() +
                                "); change to another one"
                          : (path.empty() ? "" : path + ": ") + error.code().message()));
  return ExitCode::kFailure;
}

}  // namespace

ExitCode Run(const std::vector<std::string>& args, Console& console) {
  CLI::App app(kAbout, "attune");
  app.footer(kExitCodes);
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("--version", std::string("attune ") + kVersion, "Print the version");
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);

  Action chosen;
  AddRunCommand(app, chosen);
  AddTrainCommand(app, chosen);
  AddServeCommand(app, chosen);
  AddExecutorCommands(app, chosen);
  AddQueueCommand(app, chosen);
  AddSweepCommands(app, chosen);
  AddTrialCommands(app, chosen);
  AddCheckpointCommands(app, chosen);
  AddAskCommands(app, chosen);
  AddDbCommands(app, chosen);
  AddReportCommand(app, chosen);
  AddReplayCommand(app, chosen);
  AddSimulateCommand(app, chosen);
  AddSlurmCommands(app, chosen);
  AddKubernetesCommands(app, chosen);
  AddLoginCommand(app, chosen);
  AddTokenCommands(app, chosen);
  AddSecretCommands(app, chosen);
  AddDoctorCommand(app, chosen);
  AddCompletionCommand(app, chosen);
  AddVersionCommand(app, chosen);

  if (const auto answered = AnswerScript(app, args, console)) return *answered;

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
  } catch (const std::filesystem::filesystem_error& error) {
    return FailWithFileSystemError(error, console);
  }
}

}  // namespace attune::cli
