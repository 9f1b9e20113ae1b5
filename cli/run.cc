#include "cli/run.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/version.h"
#include "cli/verbs/completion.h"
#include "cli/verbs/verb.h"
#include "sweepfile/suggest.h"

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

// The program, and the noun and the verb that a command line has come to.
std::vector<const CLI::App*> Chain(const CLI::App& app) {
  std::vector<const CLI::App*> chain = {&app};
  while (!chain.back()->get_subcommands().empty()) {
    chain.push_back(chain.back()->get_subcommands().front());
  }
  return chain;
}

std::string CommandOf(const std::vector<const CLI::App*>& chain) {
  std::string command;
  for (const CLI::App* app : chain) command += (command.empty() ? "" : " ") + app->get_name();
  return command;
}

// The option or the verb that was probably meant by a word; empty where none is near.
std::string Meant(const std::string& word, const CLI::App& app) {
  std::vector<std::string> known;
  if (!word.starts_with("--")) {
    for (const CLI::App* verb : app.get_subcommands(nullptr)) known.push_back(verb->get_name());
    return sweepfile::Suggest(word, known);
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back(name);
  }
  const std::string name = sweepfile::Suggest(word.substr(2, word.find('=') - 2), known);
  return name.empty() ? "" : "--" + name;
}

// All words that belong nowhere, as they were typed.
std::string Unexpected(const std::vector<const CLI::App*>& chain) {
  std::string words;
  for (const CLI::App* app : chain) {
    for (const std::string& word : app->remaining()) {
      const std::string meant = Meant(word, *app);
      words += (words.empty() ? "not expected: `" : ", `") + word + '`';
      if (!meant.empty()) words += " (did you mean `" + meant + "`?)";
    }
  }
  return words;
}

// What is wrong with a command line; CLI11 says it where nothing is known better.
std::string FaultOf(const std::vector<const CLI::App*>& chain, const CLI::ParseError& error) {
  const CLI::App& last = *chain.back();
  const std::string unexpected = Unexpected(chain);
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
  const std::string meant = Meant(word, last);
  return "there is no verb `" + word + '`' +
         (chain.size() > 1 ? " of `" + CommandOf(chain) + '`' : "") +
         (meant.empty() ? "" : "; did you mean `" + meant + "`?");
}

ExitCode UsageError(const CLI::App& app, const CLI::ParseError& error, Console& console) {
  const std::vector<const CLI::App*> chain = Chain(app);
  console.err.Print("attune: " + FaultOf(chain, error) + "\nsee `" + CommandOf(chain) + " --help`");
  return ExitCode::kUsage;
}

// A relative path means nothing once the working directory is gone.
ExitCode FileSystemError(const std::filesystem::filesystem_error& error, Console& console) {
  std::error_code lost;
  const std::filesystem::path working_directory = std::filesystem::current_path(lost);
  const std::string path = error.path1().string();
  console.err.Print(
      "attune: " +
      (lost ? "the working directory cannot be used (" + lost.message() + "); change to another one"
            : (path.empty() ? "" : path + ": ") + error.code().message()));
  return ExitCode::kFailure;
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
  AddLoginVerb(app, chosen);
  AddTokenVerbs(app, chosen);
  AddSecretVerbs(app, chosen);
  AddDoctorVerb(app, chosen);
  AddCompletionVerb(app, chosen);
  AddVersionVerb(app, chosen);

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
    return FileSystemError(error, console);
  }
}

}  // namespace attune::cli
