#include <chrono>
#include <fstream>

#include "base/result.h"
#include "cli/commands/annotate.h"
#include "cli/commands/checkout.h"
#include "cli/commands/command.h"
#include "cli/json.h"
#include "cli/views/trial_view.h"
#include "cli/watch/log_follower.h"
#include "cli/watch/model.h"
#include "json/parse.h"
#include "system/files.h"
#include "system/mailbox.h"

namespace attune::cli {
namespace {

// The server sends no event when a log grows.
constexpr std::chrono::milliseconds kLogPollPeriod{500};

struct TrialListFlags : SweepOrNewestFlags {
  Api::TrialQuery query;

  void AddTo(CLI::App& command) {
    command
        .add_option("--sort", query.order_by,
                    "Column, such as best, step or config.lr; -best: the worst first "
                    "(default: number)")
        ->type_name("COLUMN");
    command
        .add_option("--filter", query.filter,
                    "Only trials that match, such as 'lr<0.01 state:stopped'")
        ->type_name("WORDS");
    command.add_option("--limit", query.limit, "Maximum number of trials (default: all)")
        ->type_name("N")
        ->check(PositiveNumber());
    SweepOrNewestFlags::AddTo(command);
  }
};

ExitCode ListTrials(const TrialListFlags& flags, Console& console, Api& api) {
  const Result<std::string> id = SweepOrNewest(api, flags.id);
  if (!id.ok()) return Fail(console, id.error());
  const auto list = api.Trials(*id, flags.query);
  if (!list.ok()) return Fail(console, list.error());
  if (flags.output.json()) {
    console.out.Print(Dump(list->document, 2));
    return ExitCode::kSuccess;
  }
  const auto sweep = api.Sweep(*id);
  if (!sweep.ok()) return Fail(console, sweep.error());
  console.out.PrintLines(
      TrialTable(list->trials, sweep->metric.name, console.out.style(), console.out.width()));
  return ExitCode::kSuccess;
}

ExitCode Get(const TrialNameFlags& flags, Console& console, Api& api) {
  const Result<TrialName> name = TrialName::Parse(flags.trial);
  if (!name.ok()) return Fail(console, name.error());
  return ShowAnswer(flags.output, console, api.Trial(*name), [&](const rest::TrialDetail& trial) {
    console.out.PrintLines(TrialSections(trial, console.out.style(), console.out.width()));
  });
}

struct TrialExplainFlags : TrialNameFlags {
  std::optional<int64_t> step;

  void AddTo(CLI::App& command) {
    command.add_option("--step", step, "Step of the decision (default: the newest)")
        ->type_name("N")
        ->check(PositiveNumber());
    TrialNameFlags::AddTo(command);
  }
};

ExitCode Explain(const TrialExplainFlags& flags, Console& console, Api& api) {
  const Result<TrialName> name = TrialName::Parse(flags.trial);
  if (!name.ok()) return Fail(console, name.error());
  const auto show = [&](const rest::Explanation& explanation) {
    // The decision is useful even if the trial itself is not available.
    const auto trial = api.Trial(*name);
    console.out.PrintLines(ExplanationSections(explanation, name->number,
                                               trial.ok() ? &trial.value() : nullptr,
                                               console.out.style(), console.out.width()));
  };
  return ShowAnswer(flags.output, console, api.Explanation(*name, flags.step), show);
}

struct TrialScheduleFlags : TrialNameFlags {
  void AddTo(CLI::App& command) {
    output.yaml = true;
    TrialNameFlags::AddTo(command);
  }
};

ExitCode Schedule(const TrialScheduleFlags& flags, Console& console, Api& api) {
  const Result<TrialName> name = TrialName::Parse(flags.trial);
  if (!name.ok()) return Fail(console, name.error());
  return ShowAnswer(
      flags.output, console, api.Schedule(*name), [&](const rest::Schedule& schedule) {
        if (flags.output.format == "yaml") return console.out.Write(schedule.file);
        console.out.PrintLines(ScheduleTable(schedule, console.out.style(), console.out.width()));
      });
}

struct TrialLogsFlags : TrialNameFlags {
  int rank = 0;
  std::optional<int> attempt;
  bool follow = false;

  void AddTo(CLI::App& command) {
    command.add_option("--rank", rank, "Rank")
        ->check(NonNegativeNumber())
        ->type_name("N")
        ->capture_default_str();
    command.add_option("--attempt", attempt, "Attempt (default: the newest)")
        ->check(PositiveNumber())
        ->type_name("N");
    command.add_flag("-f,--follow", follow, "Follow the log until the trial ends");
    output.fixed = true;
    TrialNameFlags::AddTo(command);
  }
};

ExitCode Logs(const TrialLogsFlags& flags, Console& console, Api& api) {
  const Result<TrialName> name = TrialName::Parse(flags.trial);
  if (!name.ok()) return Fail(console, name.error());
  Mailbox<int> mailbox;
  const Interrupt::Subscription wake(console.interrupt, [&] { mailbox.Wake(); });
  LogFollower log(api, *name, flags.rank, flags.attempt, console.out);
  while (true) {
    // Reads the state before the log; otherwise the last lines of an ending trial could be missed.
    const auto trial = api.Trial(*name);
    if (!trial.ok()) return Fail(console, trial.error());
    const bool is_last = !flags.follow || IsFinal(trial->state);
    const Status copied = log.Copy(trial->attempt_count);
    // A followed trial that waits for its first gang will have a log later.
    if (!copied.ok() && (is_last || copied.error().code != ErrorCode::kNotFound)) {
      return Fail(console, copied.error());
    }
    if (is_last) return ExitCode::kSuccess;
    mailbox.TakeUntil(std::chrono::steady_clock::now() + kLogPollPeriod);
    if (console.interrupt.requested()) return ExitCode::kInterrupted;
  }
}

ExitCode Steer(const TrialNameFlags& flags, Console& console, Api& api, const std::string& action,
               const Json& body) {
  const Result<TrialName> name = TrialName::Parse(flags.trial);
  if (!name.ok()) return Fail(console, name.error());
  return ShowEffect(flags.output, console,
                    "trial " + name->sweep + '/' + std::to_string(name->number),
                    api.SteerTrial(*name, action, body));
}

ExitCode Kill(const TrialNameFlags& flags, Console& console, Api& api) {
  return Steer(flags, console, api, "kill", Json::object());
}

struct TrialRetryFlags : TrialNameFlags {
  bool from_start = false;

  void AddTo(CLI::App& command) {
    command.add_flag("--from-start", from_start, "Start from the beginning, without a checkpoint");
    TrialNameFlags::AddTo(command);
  }
};

ExitCode Retry(const TrialRetryFlags& flags, Console& console, Api& api) {
  return Steer(flags, console, api, "retry",
               rest::ToJson(rest::Retry{.from_start = flags.from_start}));
}

struct TrialContinueFlags : TrialNameFlags {
  int64_t until = 0;

  void AddTo(CLI::App& command) {
    command.add_option("--until", until, "Step to reach")
        ->required()
        ->check(PositiveNumber())
        ->type_name("STEP");
    TrialNameFlags::AddTo(command);
  }
};

ExitCode Continue(const TrialContinueFlags& flags, Console& console, Api& api) {
  return Steer(flags, console, api, "continue",
               rest::ToJson(rest::Continuation{.until = flags.until}));
}

struct TrialEnqueueFlags : SweepNameFlags {
  std::vector<std::string> parameters;
  std::string config_file;
  std::string patch_file;

  void AddTo(CLI::App& command) {
    command.add_option("-p,--parameter", parameters, "Parameter, such as lr=0.1 (repeatable)")
        ->type_name("NAME=VALUE")
        ->allow_extra_args(false);
    command.add_option("--config", config_file, "JSON file with parameters; -p overrides it")
        ->check(CLI::ExistingFile)
        ->type_name("FILE");
    command
        .add_option("--patch", patch_file,
                    "Patch of the sweep's code for this trial, as `git diff` writes it")
        ->check(CLI::ExistingFile)
        ->type_name("FILE");
    SweepNameFlags::AddTo(command);
  }
};

// The values of --config, overridden by those of -p.
Result<Json> ReadConfig(const TrialEnqueueFlags& flags) {
  Json config = Json::object();
  if (!flags.config_file.empty()) {
    std::ifstream file(flags.config_file);
    config = ParseJson<Json>(file);
    if (!config.is_object()) {
      return Error{ErrorCode::kInvalid,
                   "--config: " + flags.config_file + " is not a JSON object with parameters"};
    }
  }
  const Result<Json> given = ReadAssignments(flags.parameters, "-p");
  if (!given.ok()) return given.error();
  for (const auto& [name, value] : given->items()) config[name] = value;
  return config;
}

ExitCode Enqueue(const TrialEnqueueFlags& flags, Console& console, Api& api) {
  const Result<Json> config = ReadConfig(flags);
  if (!config.ok()) return Fail(console, config.error());
  rest::NewTrial request{.config = *config};
  if (!flags.patch_file.empty()) {
    Result<std::string> patch = ReadWhole(flags.patch_file);
    if (!patch.ok()) return Fail(console, patch.error());
    if (patch->empty())
      return Fail(console, {ErrorCode::kInvalid, "--patch: " + flags.patch_file + " is empty"});
    request.patch = *std::move(patch);
  }
  return ShowAnswer(flags.output, console, api.EnqueueTrial(flags.id, request),
                    [&](const rest::Trial& trial) {
                      console.out.Print(flags.id + '/' + std::to_string(trial.number));
                    });
}

}  // namespace

void AddTrialCommands(CLI::App& app, Action& chosen) {
  CLI::App& noun = *app.add_subcommand("trial", "Inspect and control trials");
  noun.require_subcommand(1);
  AddCommand<TrialListFlags>(noun, chosen, "list", "List the trials of a sweep", ListTrials);
  AddCommand<TrialNameFlags>(noun, chosen, "get",
                             "Show a trial with its attempts, decisions and reports", Get);
  AddCommand<TrialExplainFlags>(noun, chosen, "explain",
                                "Explain why a trial was stopped, paused or continued", Explain);
  AddCommand<TrialScheduleFlags>(
      noun, chosen, "schedule", "Show the configurations that trained a trial's weights", Schedule);
  AddCommand<TrialLogsFlags>(noun, chosen, "logs", "Print the log of a rank", Logs);
  AddCommand<TrialEnqueueFlags>(noun, chosen, "enqueue", "Add a configuration that runs next",
                                Enqueue);
  AddCommand<TrialNameFlags>(noun, chosen, "kill", "End a trial now", Kill);
  AddCommand<TrialRetryFlags>(noun, chosen, "retry", "Retry an ended trial", Retry);
  AddCommand<TrialContinueFlags>(noun, chosen, "continue",
                                 "Continue an ended trial to a later step", Continue);
  AddTrialAnnotations(noun, chosen);
  AddCheckoutCommand(noun, chosen);
}

}  // namespace attune::cli
