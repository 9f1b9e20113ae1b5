#include <algorithm>
#include <chrono>
#include <optional>

#include "base/result.h"
#include "cli/check_sweep.h"
#include "cli/commands/annotate.h"
#include "cli/commands/command.h"
#include "cli/commands/settings.h"
#include "cli/commands/sweep_clone.h"
#include "cli/json.h"
#include "cli/text/numbers.h"
#include "cli/text/width.h"
#include "cli/views/failure.h"
#include "cli/views/sweep_view.h"
#include "cli/watch/clock.h"
#include "cli/watch/outcome.h"
#include "cli/watch/watch.h"
#include "sweepfile/sweepfile.h"

namespace attune::cli {
namespace {

CLI::Option* AddTimeout(CLI::App& command, std::string& timeout) {
  return command
      .add_option("--timeout", timeout, "Exit with code 6 after this time, such as 90s or 2h")
      ->type_name("TIME");
}

std::string ReattachCommand(const ClientFlags& flags, const std::string& id) {
  std::string command = "attune sweep watch " + id;
  if (!flags.server.server.empty()) {
    command += " --server " + flags.server.server;
  } else if (flags.server.data_dir != ServerChoice().data_dir) {
    command += " --data-dir " + flags.server.data_dir.string();
  }
  return command;
}

// Follows the sweep until it ends and prints its outcome, which is also the exit code.
ExitCode Watch(const ClientFlags& flags, const std::string& id, const std::string& timeout,
               Console& console, Api& api) {
  WatchOptions options{.sweep = id};
  if (!timeout.empty()) {
    const std::optional<double> seconds = ParseDuration(timeout);
    if (!seconds.has_value()) {
      return Fail(console, {ErrorCode::kInvalid,
                            "--timeout: `" + timeout + "` is not a time; write 90s, 30m or 2h"});
    }
    options.timeout = std::chrono::duration<double>(*seconds);
  }
  const std::unique_ptr<Progress> progress = flags.output.json()
                                                 ? MakeJsonProgress(console.out, console.err)
                                                 : MakeTextProgress(console.out);
  const Result<WatchEnd> end = WatchSweep(api, options, *progress, console.interrupt);
  if (!end.ok()) return Fail(console, end.error());
  if (*end == WatchEnd::kInterrupted) {
    console.err.Print("the sweep continues; to watch it again: `" + ReattachCommand(flags, id) +
                      '`');
    return ExitCode::kInterrupted;
  }
  if (*end == WatchEnd::kTimedOut) {
    console.err.Print("attune: sweep " + id + " has not ended within " + timeout);
    return ExitCode::kTimeout;
  }

  const auto sweep = api.Sweep(id);
  if (!sweep.ok()) return Fail(console, sweep.error());
  if (!flags.output.json()) {
    const auto list = api.Trials(id);
    if (!list.ok()) return Fail(console, list.error());
    console.out.Print("");
    console.out.PrintLines(OutcomeLines(*sweep, list->trials,
                                        SweepSeconds(*sweep, SecondsSince1970()),
                                        console.out.style(), console.out.width()));
    if (ExitCodeOfSweep(*sweep) == ExitCode::kSweepFailed)
      console.out.PrintLines(LastFailure(api, list->trials));
  }
  return ExitCodeOfSweep(*sweep);
}

struct SweepCreateFlags : ClientFlags {
  std::string file;
  bool watch = false;
  std::string timeout;

  void AddTo(CLI::App& command) {
    AddSweepFile(command, file);
    CLI::Option* const watching =
        command.add_flag("--watch", watch, "Follow the sweep until it ends");
    AddTimeout(command, timeout)->needs(watching);
    ClientFlags::AddTo(command);
  }
};

// Prints FILE:LINE: messages without the prefix `attune:`, so that editors can parse them.
ExitCode FailOf(const SweepDocument& document, const Error& error, Console& console) {
  if (!error.message.starts_with(document.path.string() + ':')) return Fail(console, error);
  console.err.Print(error.message);
  return ExitCode::kUsage;
}

ExitCode ShowCreated(const ClientFlags& flags, const Answer<rest::SweepDetail>& sweep,
                     Console& console) {
  return ShowAnswer(flags.output, console, sweep, [&](const rest::Sweep& created) {
    console.out.Print(created.id);
    for (const std::string& source : created.warm_start) console.err.Print("warm start: " + source);
    if (!created.waiting_reason.empty())
      console.err.Print("waiting to start: " + Clean(created.waiting_reason));
    console.err.Print("to watch it: `" + ReattachCommand(flags, created.id) + '`');
  });
}

ExitCode Create(const SweepCreateFlags& flags, Console& console, Api& api) {
  const Result<SweepDocument> document = SweepDocument::Read(flags.file);
  if (!document.ok()) return Fail(console, document.error());
  const auto sweep = api.CreateSweep(*document);
  if (!sweep.ok()) return FailOf(*document, sweep.error(), console);
  PrintWarnings(*sweep, console);
  if (!flags.watch) return ShowCreated(flags, sweep, console);
  console.err.Print("sweep " + sweep->id + " created; Ctrl-C leaves it running");
  return Watch(flags, sweep->id, flags.timeout, console, api);
}

struct SweepCloneFlags : SweepNameFlags {
  std::vector<std::string> settings;
  std::optional<std::string> name;
  bool dry_run = false;

  void AddTo(CLI::App& command) {
    command
        .add_option("--set", settings,
                    "New value of a key, in YAML, such as parameters.lr.max=0.1; null removes the "
                    "key (repeatable)")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    command.add_option("--name", name, "Name of the new sweep (default: the old name)")
        ->type_name("NAME");
    command.add_flag("--dry-run", dry_run, "Print the new sweep file and create nothing");
    SweepNameFlags::AddTo(command);
  }
};

ExitCode Clone(const SweepCloneFlags& flags, Console& console, Api& api) {
  auto settings = SettingsOf(flags.settings);
  if (!settings.ok()) return Fail(console, settings.error());
  if (flags.name) settings->push_back({{"name"}, Dump(Json(*flags.name))});
  const Result<SweepDocument> document = CloneSweep(api, flags.id, *settings);
  if (!document.ok()) return Fail(console, document.error());
  if (flags.dry_run) {
    console.out.Write(document->text);
    return ExitCode::kSuccess;
  }
  const auto sweep = api.CreateSweep(*document);
  if (!sweep.ok()) return FailOf(*document, sweep.error(), console);
  PrintWarnings(*sweep, console);
  return ShowCreated(flags, sweep, console);
}

struct SweepListFlags : ClientFlags {
  std::string tag;

  void AddTo(CLI::App& command) {
    command.add_option("--tag", tag, "Only sweeps with this tag")->type_name("NAME");
    ClientFlags::AddTo(command);
  }
};

ExitCode List(const SweepListFlags& flags, Console& console, Api& api) {
  auto answer = api.Sweeps();
  if (answer.ok() && !flags.tag.empty()) {
    std::erase_if(answer->sweeps, [&](const rest::Sweep& sweep) {
      return std::ranges::find(sweep.tags, flags.tag) == sweep.tags.end();
    });
    answer->document = rest::ToJson<rest::SweepList>(*answer);
  }
  return ShowAnswer(flags.output, console, answer, [&](const rest::SweepList& list) {
    if (!list.sweeps.empty()) {
      console.out.PrintLines(
          SweepTable(list.sweeps, SecondsSince1970(), console.out.style(), console.out.width()));
    } else if (flags.tag.empty()) {
      console.err.Print("no sweep yet; create one with `attune sweep create -f sweep.yaml`");
    } else {
      console.err.Print("no sweep has the tag " + flags.tag);
    }
  });
}

ExitCode Get(const SweepOrNewestFlags& flags, Console& console, Api& api) {
  const Result<std::string> id = SweepOrNewest(api, flags.id);
  if (!id.ok()) return Fail(console, id.error());
  return ShowAnswer(flags.output, console, api.Sweep(*id), [&](const rest::SweepDetail& sweep) {
    std::optional<rest::SweepCost> cost;
    if (auto answer = api.Cost(*id); answer.ok()) cost = *answer;
    console.out.PrintLines(SweepSections(sweep, cost, SecondsSince1970(), console.out.style()));
  });
}

ExitCode Cost(const SweepOrNewestFlags& flags, Console& console, Api& api) {
  const Result<std::string> id = SweepOrNewest(api, flags.id);
  if (!id.ok()) return Fail(console, id.error());
  return ShowAnswer(flags.output, console, api.Cost(*id), [&](const rest::SweepCost& cost) {
    console.out.PrintLines(CostSections(cost, console.out.style()));
  });
}

struct SweepActivityFlags : SweepOrNewestFlags {
  int limit = 100;

  void AddTo(CLI::App& command) {
    command.add_option("--limit", limit, "Maximum number of lines")
        ->check(CLI::Range(1, 1000))
        ->type_name("N")
        ->capture_default_str();
    SweepOrNewestFlags::AddTo(command);
  }
};

ExitCode Activity(const SweepActivityFlags& flags, Console& console, Api& api) {
  const Result<std::string> id = SweepOrNewest(api, flags.id);
  if (!id.ok()) return Fail(console, id.error());
  const auto show = [&](const rest::Activity& activity) {
    console.out.PrintLines(ActivityTable(activity, console.out.style(), console.out.width()));
    if (!activity.next_page_token.empty())
      console.err.Print("there are older actions; see --limit");
  };
  return ShowAnswer(flags.output, console, api.Activity(*id, flags.limit), show);
}

struct SweepImportanceFlags : SweepOrNewestFlags {
  std::optional<std::string> metric;
  std::optional<std::string> mode;

  void AddTo(CLI::App& command) {
    command.add_option("--metric", metric, "Metric to analyze (default: the first objective)")
        ->type_name("NAME");
    command
        .add_option("--mode", mode, "Best values of a metric that is not an objective: min, max")
        ->type_name("MODE")
        ->check(CLI::IsMember({"min", "max"}));
    SweepOrNewestFlags::AddTo(command);
  }
};

ExitCode Importance(const SweepImportanceFlags& flags, Console& console, Api& api) {
  const Result<std::string> id = SweepOrNewest(api, flags.id);
  if (!id.ok()) return Fail(console, id.error());
  const auto show = [&](const rest::Importance& importance) {
    if (!importance.reason.empty()) return console.err.Print(Clean(importance.reason));
    console.out.PrintLines(ImportanceTable(importance, console.out.style(), console.out.width()));
  };
  return ShowAnswer(flags.output, console, api.Importance(*id, flags.metric, flags.mode), show);
}

struct SweepWatchFlags : SweepOrNewestFlags {
  std::string timeout;

  void AddTo(CLI::App& command) {
    AddTimeout(command, timeout);
    SweepOrNewestFlags::AddTo(command);
  }
};

ExitCode WatchCommand(const SweepWatchFlags& flags, Console& console, Api& api) {
  const Result<std::string> id = SweepOrNewest(api, flags.id);
  if (!id.ok()) return Fail(console, id.error());
  return Watch(flags, *id, flags.timeout, console, api);
}

template <const char* action>
ExitCode Steer(const SweepNameFlags& flags, Console& console, Api& api) {
  return ShowEffect(flags.output, console, "sweep " + flags.id, api.SteerSweep(flags.id, action));
}

constexpr char kPause[] = "pause";
constexpr char kResume[] = "resume";
constexpr char kStop[] = "stop";
constexpr char kKill[] = "kill";
constexpr char kUndelete[] = "undelete";

struct SweepRetryFlags : SweepNameFlags {
  bool killed = false;

  void AddTo(CLI::App& command) {
    command.add_flag("--killed", killed, "Also retry killed trials");
    SweepNameFlags::AddTo(command);
  }
};

// Retries every failed trial and, with --killed, every killed one.
ExitCode Retry(const SweepRetryFlags& flags, Console& console, Api& api) {
  const auto list = api.Trials(flags.id);
  if (!list.ok()) return Fail(console, list.error());
  std::vector<int64_t> retried;
  for (const rest::Trial& trial : list->trials) {
    if (trial.state != "failed" && !(flags.killed && trial.state == "killed")) continue;
    const auto answer = api.SteerTrial({flags.id, trial.number}, "retry",
                                       rest::ToJson(rest::Retry{.from_start = false}));
    if (!answer.ok()) return Fail(console, answer.error());
    retried.push_back(trial.number);
  }
  if (flags.output.json()) {
    console.out.Print(Dump({{"retried", retried}}, 2));
  } else if (retried.empty()) {
    console.err.Print("sweep " + flags.id + " has no failed" +
                      (flags.killed ? " or killed trial" : " trial; see also --killed"));
  } else {
    console.err.Print("sweep " + flags.id + ": retrying " +
                      (retried.size() == 1 ? "trial " : "trials ") + JoinWithCommas(retried));
  }
  return ExitCode::kSuccess;
}

constexpr int kDeletionDelaySeconds = 10;

struct SweepRmFlags : ClientFlags {
  std::vector<std::string> ids;
  bool now = false;

  void AddTo(CLI::App& command) {
    command.add_option("SWEEP", ids, "Sweeps, such as s1 s2")->required();
    command.add_flag("--now", now,
                     "Delete at once. Otherwise the server waits " +
                         std::to_string(kDeletionDelaySeconds) + " s, and you can undo it");
    ClientFlags::AddTo(command);
  }
};

// Deletes the sweeps in order, now or after a delay. Stops at the first that cannot be deleted.
ExitCode Rm(const SweepRmFlags& flags, Console& console, Api& api) {
  Json deleted = Json::array();
  Json scheduled = Json::array();
  ExitCode code = ExitCode::kSuccess;
  for (const std::string& id : flags.ids) {
    const auto answer = api.DeleteSweep(id, flags.now ? 0 : kDeletionDelaySeconds);
    if (!answer.ok()) {
      code = Fail(console, answer.error());
      break;
    }
    (answer->deletion ? scheduled : deleted).push_back(id);
    if (!flags.output.json()) console.err.Print("sweep " + id + ": " + Clean(answer->effect));
  }
  if (flags.output.json()) {
    Json answer = {{"deleted", std::move(deleted)}};
    if (!scheduled.empty()) answer["scheduled"] = std::move(scheduled);
    console.out.Print(Dump(answer, 2));
  }
  return code;
}

struct SweepExtendFlags : SweepNameFlags {
  std::optional<int64_t> max_trials;
  std::optional<int64_t> max_step;
  std::string max_time;
  std::optional<double> max_gpu_hours;

  void AddTo(CLI::App& command) {
    command.add_option("--max-trials", max_trials, "Maximum number of trials; 0: no limit")
        ->type_name("N");
    command.add_option("--max-step", max_step, "Step at which a trial is complete; can only grow")
        ->type_name("N");
    command
        .add_option("--max-time", max_time,
                    "Maximum time of the sweep, such as 90m or 2h; 0s: no limit")
        ->type_name("TIME");
    command.add_option("--max-gpu-hours", max_gpu_hours, "Maximum GPU-hours; 0: no limit")
        ->type_name("HOURS");
    SweepNameFlags::AddTo(command);
  }
};

ExitCode Extend(const SweepExtendFlags& flags, Console& console, Api& api) {
  const rest::Extension limits{.max_trials = flags.max_trials,
                               .max_step = flags.max_step,
                               .max_time = OmitIfEmpty(flags.max_time),
                               .max_gpu_hours = flags.max_gpu_hours};
  return ShowEffect(flags.output, console, "sweep " + flags.id,
                    api.SteerSweep(flags.id, "extend", rest::ToJson(limits)));
}

struct SweepEditFlags : SweepNameFlags {
  std::vector<std::string> settings;

  void AddTo(CLI::App& command) {
    SweepNameFlags::AddTo(command);
    command.add_option("KEY=VALUE", settings, "Keys and new values, such as stop.max_trials=200")
        ->required();
  }
};

ExitCode Edit(const SweepEditFlags& flags, Console& console, Api& api) {
  const Result<Json> patch = PatchOf(flags.settings);
  if (!patch.ok()) return Fail(console, patch.error());
  return ShowEffect(flags.output, console, "sweep " + flags.id,
                    api.SteerSweep(flags.id, "edit", *patch));
}

struct SweepValidateFlags {
  std::string file;
  OutputFlags output;

  void AddTo(CLI::App& command) {
    AddSweepFile(command, file);
    output.AddTo(command);
  }
};

ExitCode Validate(const SweepValidateFlags& flags, Console& console) {
  flags.output.Apply(console);
  const Result<SweepDocument> document = SweepDocument::Read(flags.file);
  if (!document.ok()) return Fail(console, document.error());
  const CheckedSweep checked = CheckSweep(*document);
  if (!checked.spec.has_value()) {
    console.err.PrintLines(checked.faults);
    return ExitCode::kUsage;
  }
  const std::string resolved = sweepfile::ResolvedYaml(*checked.spec);
  if (flags.output.json()) {
    Json rungs = Json::array();
    for (const Step rung : checked.rungs) rungs.push_back(rung.value);
    console.out.Print(
        Dump({{"resolved", resolved}, {"rungs", rungs}, {"notes", checked.notes}}, 2));
    return ExitCode::kSuccess;
  }
  console.out.Write(resolved);
  std::string plan;
  for (const Step rung : checked.rungs) {
    plan += (plan.empty() ? "# rungs: " : ", ") + std::to_string(rung.value);
  }
  console.out.Print(plan.empty() ? "# rungs: none" : plan);
  for (const std::string& note : checked.notes) console.out.Print("# " + note);
  return ExitCode::kSuccess;
}

}  // namespace

void AddSweepCommands(CLI::App& app, Action& chosen) {
  CLI::App& noun = *app.add_subcommand("sweep", "Create, inspect and control sweeps");
  noun.require_subcommand(1);
  AddCommand<SweepCreateFlags>(noun, chosen, "create", "Create a sweep from a file", Create);
  AddCommand<SweepCloneFlags>(noun, chosen, "clone",
                              "Create a sweep from another one, with changes", Clone);
  AddCommand<SweepListFlags>(noun, chosen, "list", "List sweeps, newest first", List);
  AddCommand<SweepOrNewestFlags>(noun, chosen, "get", "Show a sweep", Get);
  AddCommand<SweepOrNewestFlags>(noun, chosen, "cost",
                                 "Show the hours that a sweep has used, wasted and saved", Cost);
  AddCommand<SweepImportanceFlags>(noun, chosen, "importance",
                                   "Show how much each parameter matters", Importance);
  AddCommand<SweepActivityFlags>(noun, chosen, "activity",
                                 "List who did what to a sweep and its trials, newest first",
                                 Activity);
  AddCommand<SweepWatchFlags>(noun, chosen, "watch", "Follow a sweep until it ends", WatchCommand);
  AddCommand<SweepNameFlags>(noun, chosen, "pause",
                             "Pause a sweep; running trials save a checkpoint and exit",
                             Steer<kPause>);
  AddCommand<SweepNameFlags>(noun, chosen, "resume", "Resume a paused sweep", Steer<kResume>);
  AddCommand<SweepNameFlags>(noun, chosen, "stop", "Let running trials finish and start no more",
                             Steer<kStop>);
  AddCommand<SweepNameFlags>(noun, chosen, "kill", "End all trials of a sweep now", Steer<kKill>);
  AddCommand<SweepRetryFlags>(noun, chosen, "retry", "Retry the failed trials of a sweep", Retry);
  AddCommand<SweepExtendFlags>(noun, chosen, "extend",
                               "Set the limits of a sweep; an ended sweep runs again", Extend);
  AddCommand<SweepEditFlags>(noun, chosen, "edit", "Edit a sweep while it runs", Edit);
  AddSweepAnnotations(noun, chosen);
  AddCommand<SweepRmFlags>(noun, chosen, "rm",
                           "Delete ended sweeps with their checkpoints and logs", Rm);
  AddCommand<SweepNameFlags>(noun, chosen, "undelete", "Keep a sweep that is about to be deleted",
                             Steer<kUndelete>);
  AddCommand<SweepValidateFlags>(noun, chosen, "validate",
                                 "Check a sweep file and print it with all defaults", Validate);
}

}  // namespace attune::cli
