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

struct TrialFlags : ClientFlags {
  std::string sweep;
  std::vector<std::string> trial;
  int rank = 0;
  std::optional<int> attempt;
  std::optional<int64_t> step;
  bool follow = false;
  std::vector<std::string> parameters;
  std::string config_file;
  bool from_start = false;
  int64_t until = 0;
};

using TrialAction = ExitCode (*)(const TrialFlags&, Console&, Api&);

ExitCode List(const TrialFlags& flags, Console& console, Api& api) {
  const Result<std::string> id = SweepOrNewest(api, flags.sweep);
  if (!id.ok()) return Fail(console, id.error());
  const Result<Json> trials = api.Trials(*id);
  if (!trials.ok()) return Fail(console, trials.error());
  if (flags.output.json()) {
    console.out.Print(Dump({{"trials", *trials}}, 2));
    return ExitCode::kSuccess;
  }
  const Result<Json> sweep = api.Sweep(*id);
  if (!sweep.ok()) return Fail(console, sweep.error());
  console.out.PrintLines(TrialTable(*trials, TextAt(At(*sweep, "metric"), "name"),
                                    console.out.style(), console.out.width()));
  return ExitCode::kSuccess;
}

ExitCode Get(const TrialFlags& flags, Console& console, Api& api) {
  const Result<TrialName> name = TrialName::Parse(flags.trial);
  if (!name.ok()) return Fail(console, name.error());
  const Result<Json> trial = api.Trial(*name);
  if (!trial.ok()) return Fail(console, trial.error());
  if (flags.output.json()) {
    console.out.Print(Dump(*trial, 2));
  } else {
    console.out.PrintLines(TrialSections(*trial, console.out.style(), console.out.width()));
  }
  return ExitCode::kSuccess;
}

ExitCode Explain(const TrialFlags& flags, Console& console, Api& api) {
  const Result<TrialName> name = TrialName::Parse(flags.trial);
  if (!name.ok()) return Fail(console, name.error());
  const Result<Json> explanation = api.Explanation(*name, flags.step);
  if (!explanation.ok()) return Fail(console, explanation.error());
  if (flags.output.json()) {
    console.out.Print(Dump(*explanation, 2));
  } else {
    // The decision is the matter; where it alone can be had, it is shown alone.
    const Result<Json> trial = api.Trial(*name);
    console.out.PrintLines(ExplanationSections(*explanation, name->number,
                                               trial.ok() ? *trial : Json(), console.out.style(),
                                               console.out.width()));
  }
  return ExitCode::kSuccess;
}

ExitCode Schedule(const TrialFlags& flags, Console& console, Api& api) {
  const Result<TrialName> name = TrialName::Parse(flags.trial);
  if (!name.ok()) return Fail(console, name.error());
  const Result<Json> schedule = api.Schedule(*name);
  if (!schedule.ok()) return Fail(console, schedule.error());
  if (flags.output.json()) {
    console.out.Print(Dump(*schedule, 2));
  } else if (flags.output.format == "yaml") {
    console.out.Write(TextAt(*schedule, "file"));
  } else {
    console.out.PrintLines(ScheduleTable(*schedule, console.out.style(), console.out.width()));
  }
  return ExitCode::kSuccess;
}

ExitCode Logs(const TrialFlags& flags, Console& console, Api& api) {
  const Result<TrialName> name = TrialName::Parse(flags.trial);
  if (!name.ok()) return Fail(console, name.error());
  Mailbox<int> mailbox;
  const Interrupt::Subscription wake(console.interrupt, [&] { mailbox.Wake(); });
  LogFollower log(api, *name, flags.rank, flags.attempt, console.out);
  while (true) {
    // Asked before the log is read, so that the last lines of a trial that ends are not missed.
    const Result<Json> trial = api.Trial(*name);
    if (!trial.ok()) return Fail(console, trial.error());
    const bool over = !flags.follow || IsFinal(TextAt(*trial, "state"));
    const Status copied = log.Copy(WholeAt(*trial, "attempts"));
    // A trial that waits for its first gang has no log yet; one that is followed will have.
    if (!copied.ok() && (over || copied.error().code != ErrorCode::kNotFound)) {
      return Fail(console, copied.error());
    }
    if (over) return ExitCode::kSuccess;
    mailbox.TakeUntil(std::chrono::steady_clock::now() + kLogPollPeriod);
    if (console.interrupt.requested()) return ExitCode::kInterrupted;
  }
}

ExitCode Steer(const TrialFlags& flags, Console& console, Api& api, const std::string& verb,
               const Json& body) {
  const Result<TrialName> name = TrialName::Parse(flags.trial);
  if (!name.ok()) return Fail(console, name.error());
  return ShowEffect(flags.output, console,
                    "trial " + name->sweep + '/' + std::to_string(name->number),
                    api.SteerTrial(*name, verb, body));
}

ExitCode Kill(const TrialFlags& flags, Console& console, Api& api) {
  return Steer(flags, console, api, "kill", Json::object());
}

ExitCode Retry(const TrialFlags& flags, Console& console, Api& api) {
  return Steer(flags, console, api, "retry", {{"from_start", flags.from_start}});
}

ExitCode Continue(const TrialFlags& flags, Console& console, Api& api) {
  return Steer(flags, console, api, "continue", {{"until", flags.until}});
}

// The file's values, and over them those of the command line.
Result<Json> ReadConfig(const TrialFlags& flags) {
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

ExitCode Enqueue(const TrialFlags& flags, Console& console, Api& api) {
  const Result<Json> config = ReadConfig(flags);
  if (!config.ok()) return Fail(console, config.error());
  const Result<Json> trial = api.EnqueueTrial(flags.sweep, *config);
  if (!trial.ok()) return Fail(console, trial.error());
  if (flags.output.json()) {
    console.out.Print(Dump(*trial, 2));
  } else {
    console.out.Print(flags.sweep + '/' + std::to_string(WholeAt(*trial, "number")));
  }
  return ExitCode::kSuccess;
}

void Add(CLI::App& noun, Action& chosen, const char* name, const char* help, TrialAction action,
         const std::function<void(CLI::App&, TrialFlags&)>& arguments) {
  CLI::App* const verb = noun.add_subcommand(name, help);
  auto flags = std::make_shared<TrialFlags>();
  arguments(*verb, *flags);
  flags->AddTo(*verb);
  verb->callback([flags, action, &chosen] {
    chosen = [flags, action](Console& console) {
      return WithServer(*flags, console, [&](Api& api) { return action(*flags, console, api); });
    };
  });
}

void AddTrialName(CLI::App& verb, TrialFlags& flags) {
  verb.add_option("TRIAL", flags.trial, "SWEEP/NUMBER, such as s1/17")->required()->expected(1, 2);
}

}  // namespace

void AddTrialVerbs(CLI::App& app, Action& chosen) {
  CLI::App* const noun = app.add_subcommand("trial", "look at trials, steer them");
  noun->require_subcommand(1);
  Add(*noun, chosen, "list", "a sweep's trials", List, [](CLI::App& verb, TrialFlags& flags) {
    verb.add_option("SWEEP", flags.sweep, "such as s1; the newest when absent");
  });
  Add(*noun, chosen, "get", "one trial: attempts, decisions with reasons, history", Get,
      AddTrialName);
  Add(*noun, chosen, "explain", "why a trial was stopped, paused, or goes on: with its rung",
      Explain, [](CLI::App& verb, TrialFlags& flags) {
        AddTrialName(verb, flags);
        verb.add_option("--step", flags.step,
                        "the verdict on the report of this step; the newest decision when absent")
            ->check(PositiveNumber());
      });
  Add(*noun, chosen, "schedule",
      "what its weights were trained with, step by step; as yaml, the sweep file that does so "
      "again",
      Schedule, [](CLI::App& verb, TrialFlags& flags) {
        AddTrialName(verb, flags);
        flags.output.yaml = true;
      });
  Add(*noun, chosen, "logs", "what a rank printed", Logs, [](CLI::App& verb, TrialFlags& flags) {
    AddTrialName(verb, flags);
    flags.output.fixed = true;
    verb.add_option("--rank", flags.rank, "whose log")
        ->check(NonNegativeNumber())
        ->capture_default_str();
    verb.add_option("--attempt", flags.attempt, "of which attempt; the newest when absent")
        ->check(PositiveNumber());
    verb.add_flag("-f,--follow", flags.follow, "go on until the trial ends");
  });
  Add(*noun, chosen, "enqueue", "try a configuration of your own before any other", Enqueue,
      [](CLI::App& verb, TrialFlags& flags) {
        verb.add_option("SWEEP", flags.sweep, "such as s1")->required();
        verb.add_option("-p,--parameter", flags.parameters, "a parameter, such as lr=0.1")
            ->type_name("NAME=VALUE")
            ->allow_extra_args(false);
        verb.add_option("--config", flags.config_file, "a JSON file with parameters")
            ->check(CLI::ExistingFile)
            ->type_name("FILE");
      });
  Add(*noun, chosen, "kill", "end a trial now", Kill, AddTrialName);
  Add(*noun, chosen, "retry", "try an ended trial again", Retry,
      [](CLI::App& verb, TrialFlags& flags) {
        AddTrialName(verb, flags);
        verb.add_flag("--from-start", flags.from_start, "not from its newest checkpoint");
      });
  Add(*noun, chosen, "continue", "let an ended trial go on to a later step", Continue,
      [](CLI::App& verb, TrialFlags& flags) {
        AddTrialName(verb, flags);
        verb.add_option("--until", flags.until, "the step it is to reach")
            ->required()
            ->check(PositiveNumber())
            ->type_name("STEP");
      });
}

}  // namespace attune::cli
