#include <chrono>
#include <fstream>

#include "base/result.h"
#include "cli/json.h"
#include "cli/verbs/verb.h"
#include "cli/views/trial_view.h"
#include "cli/watch/log_follower.h"
#include "cli/watch/model.h"
#include "json/parse.h"
#include "system/mailbox.h"

namespace attune::cli {
namespace {

// No event tells of a log's growth.
constexpr std::chrono::milliseconds kLogPollPeriod{500};

ExitCode ListTrials(const SweepOrNewestFlags& flags, Console& console, Api& api) {
  const Result<std::string> id = SweepOrNewest(api, flags.id);
  if (!id.ok()) return Fail(console, id.error());
  const auto list = api.Trials(*id);
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

  void AddTo(CLI::App& verb) {
    verb.add_option("--step", step,
                    "the verdict on the report of this step; the newest decision when absent")
        ->check(PositiveNumber());
    TrialNameFlags::AddTo(verb);
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
  void AddTo(CLI::App& verb) {
    output.yaml = true;
    TrialNameFlags::AddTo(verb);
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

  void AddTo(CLI::App& verb) {
    verb.add_option("--rank", rank, "whose log")->check(NonNegativeNumber())->capture_default_str();
    verb.add_option("--attempt", attempt, "of which attempt; the newest when absent")
        ->check(PositiveNumber());
    verb.add_flag("-f,--follow", follow, "go on until the trial ends");
    output.fixed = true;
    TrialNameFlags::AddTo(verb);
  }
};

ExitCode Logs(const TrialLogsFlags& flags, Console& console, Api& api) {
  const Result<TrialName> name = TrialName::Parse(flags.trial);
  if (!name.ok()) return Fail(console, name.error());
  Mailbox<int> mailbox;
  const Interrupt::Subscription wake(console.interrupt, [&] { mailbox.Wake(); });
  LogFollower log(api, *name, flags.rank, flags.attempt, console.out);
  while (true) {
    // The state is read before the log, so that the last lines of a trial that ends are not missed.
    const auto trial = api.Trial(*name);
    if (!trial.ok()) return Fail(console, trial.error());
    const bool over = !flags.follow || IsFinal(trial->state);
    const Status copied = log.Copy(trial->attempt_count);
    // A followed trial that waits for its first gang will have a log later.
    if (!copied.ok() && (over || copied.error().code != ErrorCode::kNotFound)) {
      return Fail(console, copied.error());
    }
    if (over) return ExitCode::kSuccess;
    mailbox.TakeUntil(std::chrono::steady_clock::now() + kLogPollPeriod);
    if (console.interrupt.requested()) return ExitCode::kInterrupted;
  }
}

ExitCode Steer(const TrialNameFlags& flags, Console& console, Api& api, const std::string& verb,
               const Json& body) {
  const Result<TrialName> name = TrialName::Parse(flags.trial);
  if (!name.ok()) return Fail(console, name.error());
  return ShowEffect(flags.output, console,
                    "trial " + name->sweep + '/' + std::to_string(name->number),
                    api.SteerTrial(*name, verb, body));
}

ExitCode Kill(const TrialNameFlags& flags, Console& console, Api& api) {
  return Steer(flags, console, api, "kill", Json::object());
}

struct TrialRetryFlags : TrialNameFlags {
  bool from_start = false;

  void AddTo(CLI::App& verb) {
    verb.add_flag("--from-start", from_start, "not from its newest checkpoint");
    TrialNameFlags::AddTo(verb);
  }
};

ExitCode Retry(const TrialRetryFlags& flags, Console& console, Api& api) {
  return Steer(flags, console, api, "retry",
               rest::ToJson(rest::Retry{.from_start = flags.from_start}));
}

struct TrialContinueFlags : TrialNameFlags {
  int64_t until = 0;

  void AddTo(CLI::App& verb) {
    verb.add_option("--until", until, "the step it is to reach")
        ->required()
        ->check(PositiveNumber())
        ->type_name("STEP");
    TrialNameFlags::AddTo(verb);
  }
};

ExitCode Continue(const TrialContinueFlags& flags, Console& console, Api& api) {
  return Steer(flags, console, api, "continue",
               rest::ToJson(rest::Continuation{.until = flags.until}));
}

struct TrialEnqueueFlags : SweepNameFlags {
  std::vector<std::string> parameters;
  std::string config_file;

  void AddTo(CLI::App& verb) {
    verb.add_option("-p,--parameter", parameters, "a parameter, such as lr=0.1")
        ->type_name("NAME=VALUE")
        ->allow_extra_args(false);
    verb.add_option("--config", config_file, "a JSON file with parameters")
        ->check(CLI::ExistingFile)
        ->type_name("FILE");
    SweepNameFlags::AddTo(verb);
  }
};

// The values of the file; those of the command line override them.
Result<Json> ReadConfig(const TrialEnqueueFlags& flags) {
  Json config = Json::object();
  if (!flags.config_file.empty()) {
    std::ifstream file(flags.config_file);
    config = ParseJson<Json>(file);
    if (!config.is_object()) {
      return Error{ErrorCode::kInvalid,
                   "--config: " + flags.config_file + " holds no JSON object of parameters"};
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
  return ShowAnswer(flags.output, console, api.EnqueueTrial(flags.id, {.config = *config}),
                    [&](const rest::Trial& trial) {
                      console.out.Print(flags.id + '/' + std::to_string(trial.number));
                    });
}

}  // namespace

void AddTrialVerbs(CLI::App& app, Action& chosen) {
  CLI::App& noun = *app.add_subcommand("trial", "look at trials, steer them");
  noun.require_subcommand(1);
  AddVerb<SweepOrNewestFlags>(noun, chosen, "list", "a sweep's trials", ListTrials);
  AddVerb<TrialNameFlags>(noun, chosen, "get",
                          "one trial: attempts, decisions with reasons, history", Get);
  AddVerb<TrialExplainFlags>(noun, chosen, "explain",
                             "why a trial was stopped, paused, or goes on: with its rung", Explain);
  AddVerb<TrialScheduleFlags>(
      noun, chosen, "schedule",
      "what its weights were trained with, step by step; as yaml, the sweep file that does so "
      "again",
      Schedule);
  AddVerb<TrialLogsFlags>(noun, chosen, "logs", "what a rank printed", Logs);
  AddVerb<TrialEnqueueFlags>(noun, chosen, "enqueue",
                             "try a configuration of your own before any other", Enqueue);
  AddVerb<TrialNameFlags>(noun, chosen, "kill", "end a trial now", Kill);
  AddVerb<TrialRetryFlags>(noun, chosen, "retry", "try an ended trial again", Retry);
  AddVerb<TrialContinueFlags>(noun, chosen, "continue", "let an ended trial go on to a later step",
                              Continue);
}

}  // namespace attune::cli
