#include <algorithm>
#include <chrono>

#include "base/result.h"
#include "cli/check_sweep.h"
#include "cli/json.h"
#include "cli/text/numbers.h"
#include "cli/text/width.h"
#include "cli/verbs/settings.h"
#include "cli/verbs/verb.h"
#include "cli/views/failure.h"
#include "cli/views/sweep_view.h"
#include "cli/watch/clock.h"
#include "cli/watch/outcome.h"
#include "cli/watch/watch.h"
#include "sweepfile/sweepfile.h"

namespace attune::cli {
namespace {

struct SweepFlags : ClientFlags {
  std::string id;
  std::vector<std::string> ids;
  std::string file;
  bool watch = false;
  std::string timeout;
  std::optional<int64_t> max_trials;
  std::optional<int64_t> max_step;
  std::string max_time;
  std::optional<double> max_gpu_hours;
  std::vector<std::string> settings;
  std::optional<std::string> metric;
  bool killed = false;
  std::string tag;
};

using SweepAction = ExitCode (*)(const SweepFlags&, Console&, Api&);

std::string ReattachCommand(const SweepFlags& flags, const std::string& id) {
  std::string command = "attune sweep watch " + id;
  if (!flags.server.server.empty()) {
    command += " --server " + flags.server.server;
  } else if (flags.server.data_dir != ServerChoice().data_dir) {
    command += " --data-dir " + flags.server.data_dir.string();
  }
  return command;
}

// Until the sweep ends; then its outcome, in the exit code too.
ExitCode Watch(const SweepFlags& flags, const std::string& id, Console& console, Api& api) {
  WatchOptions options{.sweep = id};
  if (!flags.timeout.empty()) {
    const std::optional<double> seconds = ParseDuration(flags.timeout);
    if (!seconds.has_value()) {
      return Fail(console, {ErrorCode::kInvalid, "--timeout: `" + flags.timeout +
                                                     "` is not a time; write 90s, 30m or 2h"});
    }
    options.timeout = std::chrono::duration<double>(*seconds);
  }
  const std::unique_ptr<Progress> progress =
      flags.output.json() ? ShowAsJsonLines(console.out, console.err) : ShowForPeople(console.out);
  const Result<WatchEnd> end = WatchSweep(api, options, *progress, console.interrupt);
  if (!end.ok()) return Fail(console, end.error());
  if (*end == WatchEnd::kInterrupted) {
    console.err.Print("the sweep goes on; watch it again with `" + ReattachCommand(flags, id) +
                      '`');
    return ExitCode::kInterrupted;
  }
  if (*end == WatchEnd::kTimedOut) {
    console.err.Print("attune: sweep " + id + " has not ended within " + flags.timeout);
    return ExitCode::kTimeout;
  }

  const Result<Json> sweep = api.Sweep(id);
  if (!sweep.ok()) return Fail(console, sweep.error());
  if (!flags.output.json()) {
    const Result<Json> trials = api.Trials(id);
    if (!trials.ok()) return Fail(console, trials.error());
    console.out.Print("");
    console.out.PrintLines(OutcomeLines(*sweep, *trials, SweepSeconds(*sweep, SecondsSince1970()),
                                        console.out.style(), console.out.width()));
    if (ExitCodeOfSweep(*sweep) == ExitCode::kSweepFailed)
      console.out.PrintLines(LastFailure(api, *trials));
  }
  return ExitCodeOfSweep(*sweep);
}

ExitCode Create(const SweepFlags& flags, Console& console, Api& api) {
  const Result<SweepDocument> document = SweepDocument::Read(flags.file);
  if (!document.ok()) return Fail(console, document.error());
  const Result<Json> sweep = api.CreateSweep(*document);
  if (!sweep.ok()) {
    // Faults of the file are in the form that editors jump to, so nothing stands before them.
    if (sweep.error().message.starts_with(flags.file + ':')) {
      console.err.Print(sweep.error().message);
      return ExitCode::kUsage;
    }
    return Fail(console, sweep.error());
  }
  const std::string id = TextAt(*sweep, "id");
  if (flags.watch) {
    console.err.Print("sweep " + id + " created; Ctrl-C leaves it running");
    return Watch(flags, id, console, api);
  }
  if (flags.output.json()) {
    console.out.Print(Dump(*sweep, 2));
  } else {
    console.out.Print(id);
    for (const Json& taken : At(*sweep, "warm_start"))
      console.err.Print("begins with " + taken.get<std::string>());
    if (const std::string waiting = Clean(TextAt(*sweep, "waiting")); !waiting.empty())
      console.err.Print("it does not start yet: " + waiting);
    console.err.Print("watch it with `" + ReattachCommand(flags, id) + '`');
  }
  return ExitCode::kSuccess;
}

ExitCode List(const SweepFlags& flags, Console& console, Api& api) {
  Result<Json> sweeps = api.Sweeps();
  if (!sweeps.ok()) return Fail(console, sweeps.error());
  if (!flags.tag.empty()) {
    Json tagged = Json::array();
    for (const Json& sweep : *sweeps) {
      if (std::ranges::find(At(sweep, "tags"), Json(flags.tag)) != At(sweep, "tags").end())
        tagged.push_back(sweep);
    }
    sweeps = std::move(tagged);
  }
  if (flags.output.json()) {
    console.out.Print(Dump({{"sweeps", *sweeps}}, 2));
  } else if (sweeps->empty() && !flags.tag.empty()) {
    console.err.Print("no sweep has the tag " + flags.tag);
  } else if (sweeps->empty()) {
    console.err.Print("no sweep yet; create one with `attune sweep create -f sweep.yaml`");
  } else {
    console.out.PrintLines(
        SweepTable(*sweeps, SecondsSince1970(), console.out.style(), console.out.width()));
  }
  return ExitCode::kSuccess;
}

ExitCode Get(const SweepFlags& flags, Console& console, Api& api) {
  const Result<std::string> id = SweepOrNewest(api, flags.id);
  if (!id.ok()) return Fail(console, id.error());
  const Result<Json> sweep = api.Sweep(*id);
  if (!sweep.ok()) return Fail(console, sweep.error());
  if (flags.output.json()) {
    console.out.Print(Dump(*sweep, 2));
  } else {
    console.out.PrintLines(SweepSections(*sweep, SecondsSince1970(), console.out.style()));
  }
  return ExitCode::kSuccess;
}

ExitCode Importance(const SweepFlags& flags, Console& console, Api& api) {
  const Result<std::string> id = SweepOrNewest(api, flags.id);
  if (!id.ok()) return Fail(console, id.error());
  const Result<Json> importance = api.Importance(*id, flags.metric);
  if (!importance.ok()) return Fail(console, importance.error());
  if (flags.output.json()) {
    console.out.Print(Dump(*importance, 2));
  } else if (const std::string reason = TextAt(*importance, "reason"); !reason.empty()) {
    console.err.Print(Clean(reason));
  } else {
    console.out.PrintLines(ImportanceTable(*importance, console.out.style(), console.out.width()));
  }
  return ExitCode::kSuccess;
}

ExitCode WatchVerb(const SweepFlags& flags, Console& console, Api& api) {
  const Result<std::string> id = SweepOrNewest(api, flags.id);
  if (!id.ok()) return Fail(console, id.error());
  return Watch(flags, *id, console, api);
}

template <const char* verb>
ExitCode Steer(const SweepFlags& flags, Console& console, Api& api) {
  return ShowEffect(flags.output, console, "sweep " + flags.id, api.SteerSweep(flags.id, verb));
}

constexpr char kPause[] = "pause";
constexpr char kResume[] = "resume";
constexpr char kStop[] = "stop";
constexpr char kKill[] = "kill";

// Every failed trial, and with --killed those that were killed, as with the sweep.
ExitCode Retry(const SweepFlags& flags, Console& console, Api& api) {
  const Result<Json> trials = api.Trials(flags.id);
  if (!trials.ok()) return Fail(console, trials.error());
  Json retried = Json::array();
  std::string numbers;
  for (const Json& trial : *trials) {
    const std::string state = TextAt(trial, "state");
    if (state != "failed" && !(flags.killed && state == "killed")) continue;
    const int64_t number = WholeAt(trial, "number");
    const TrialName name{flags.id, number};
    const Result<Json> answer = api.SteerTrial(name, "retry", {{"from_start", false}});
    if (!answer.ok()) return Fail(console, answer.error());
    retried.push_back(number);
    numbers += (numbers.empty() ? "" : ", ") + std::to_string(number);
  }
  if (flags.output.json()) {
    console.out.Print(Dump({{"retried", retried}}, 2));
  } else if (retried.empty()) {
    console.err.Print("sweep " + flags.id + " has no failed trial" +
                      (flags.killed ? ", and none that was killed" : "; see also --killed"));
  } else {
    console.err.Print("sweep " + flags.id +
                      ": tried again: " + (retried.size() == 1 ? "trial " : "trials ") + numbers);
  }
  return ExitCode::kSuccess;
}

// One after the other, until one cannot be deleted.
ExitCode Rm(const SweepFlags& flags, Console& console, Api& api) {
  Json deleted = Json::array();
  ExitCode code = ExitCode::kSuccess;
  for (const std::string& id : flags.ids) {
    const Result<Json> answer = api.DeleteSweep(id);
    if (!answer.ok()) {
      code = Fail(console, answer.error());
      break;
    }
    deleted.push_back(id);
    if (!flags.output.json())
      console.err.Print("sweep " + id + ": " + Clean(TextAt(*answer, "effect")));
  }
  if (flags.output.json()) console.out.Print(Dump({{"deleted", deleted}}, 2));
  return code;
}

ExitCode Extend(const SweepFlags& flags, Console& console, Api& api) {
  Json limits = Json::object();
  if (flags.max_trials) limits["max_trials"] = *flags.max_trials;
  if (flags.max_step) limits["max_step"] = *flags.max_step;
  if (!flags.max_time.empty()) limits["max_time"] = flags.max_time;
  if (flags.max_gpu_hours) limits["max_gpu_hours"] = *flags.max_gpu_hours;
  return ShowEffect(flags.output, console, "sweep " + flags.id,
                    api.SteerSweep(flags.id, "extend", limits));
}

ExitCode Edit(const SweepFlags& flags, Console& console, Api& api) {
  const Result<Json> patch = PatchOf(flags.settings);
  if (!patch.ok()) return Fail(console, patch.error());
  return ShowEffect(flags.output, console, "sweep " + flags.id,
                    api.SteerSweep(flags.id, "edit", *patch));
}

struct ValidateFlags {
  std::string file;
  OutputFlags output;
};

ExitCode Validate(const ValidateFlags& flags, Console& console) {
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
    console.out.Print(Dump({{"resolved", resolved}, {"rungs", rungs}}, 2));
    return ExitCode::kSuccess;
  }
  console.out.Write(resolved);
  std::string plan;
  for (const Step rung : checked.rungs) {
    plan += (plan.empty() ? "# rungs: " : ", ") + std::to_string(rung.value);
  }
  console.out.Print(plan.empty() ? "# rungs: none" : plan);
  return ExitCode::kSuccess;
}

void Add(CLI::App& noun, Action& chosen, const char* name, const char* help, SweepAction action,
         const std::function<void(CLI::App&, SweepFlags&)>& arguments) {
  CLI::App* const verb = noun.add_subcommand(name, help);
  auto flags = std::make_shared<SweepFlags>();
  arguments(*verb, *flags);
  flags->AddTo(*verb);
  verb->callback([flags, action, &chosen] {
    chosen = [flags, action](Console& console) {
      return WithServer(*flags, console, [&](Api& api) { return action(*flags, console, api); });
    };
  });
}

void AddTimeout(CLI::App& verb, SweepFlags& flags) {
  verb.add_option("--timeout", flags.timeout, "leave with exit code 6 after this time: 90s, 2h")
      ->type_name("TIME");
}

}  // namespace

void AddSweepVerbs(CLI::App& app, Action& chosen) {
  CLI::App* const noun = app.add_subcommand("sweep", "create sweeps, look at them, steer them");
  noun->require_subcommand(1);

  Add(*noun, chosen, "create", "create a sweep from a file", Create,
      [](CLI::App& verb, SweepFlags& flags) {
        AddSweepFile(verb, flags.file);
        verb.add_flag("--watch", flags.watch, "follow it until it ends");
        AddTimeout(verb, flags);
      });
  Add(*noun, chosen, "list", "all sweeps, newest first", List,
      [](CLI::App& verb, SweepFlags& flags) {
        verb.add_option("--tag", flags.tag, "those that have it in their file's `tags`");
      });
  Add(*noun, chosen, "get", "one sweep", Get, [](CLI::App& verb, SweepFlags& flags) {
    verb.add_option("SWEEP", flags.id, "such as s1; the newest when absent");
  });
  Add(*noun, chosen, "importance", "how much each parameter decides about the best trials",
      Importance, [](CLI::App& verb, SweepFlags& flags) {
        verb.add_option("SWEEP", flags.id, "such as s1; the newest when absent");
        verb.add_option("--metric", flags.metric, "another than the first that it improves");
      });
  Add(*noun, chosen, "watch", "follow a sweep until it ends", WatchVerb,
      [](CLI::App& verb, SweepFlags& flags) {
        verb.add_option("SWEEP", flags.id, "such as s1; the newest when absent");
        AddTimeout(verb, flags);
      });
  const auto named = [](CLI::App& verb, SweepFlags& flags) {
    verb.add_option("SWEEP", flags.id, "such as s1")->required();
  };
  Add(*noun, chosen, "pause", "start nothing; running trials save and leave", Steer<kPause>, named);
  Add(*noun, chosen, "resume", "go on after a pause", Steer<kResume>, named);
  Add(*noun, chosen, "stop", "finish running trials, start none", Steer<kStop>, named);
  Add(*noun, chosen, "kill", "end all its trials now", Steer<kKill>, named);
  Add(*noun, chosen, "retry", "try its failed trials again, also after it has ended", Retry,
      [named](CLI::App& verb, SweepFlags& flags) {
        named(verb, flags);
        verb.add_flag("--killed", flags.killed, "and those that were killed, as with the sweep");
      });
  Add(*noun, chosen, "extend", "set its limits, also after it has ended", Extend,
      [named](CLI::App& verb, SweepFlags& flags) {
        named(verb, flags);
        verb.add_option("--max-trials", flags.max_trials, "trials in all; 0: no limit");
        verb.add_option("--max-step", flags.max_step, "step at which a trial is complete");
        verb.add_option("--max-time", flags.max_time, "time it may run: 90m, 2h; 0s: no limit")
            ->type_name("TIME");
        verb.add_option("--max-gpu-hours", flags.max_gpu_hours, "GPU-hours in all; 0: no limit");
      });

  Add(*noun, chosen, "edit", "change limits, ranges, priority or options while it runs", Edit,
      [named](CLI::App& verb, SweepFlags& flags) {
        named(verb, flags);
        verb.add_option("KEY=VALUE", flags.settings,
                        "keys of the sweep file: stop.max_trials=200 parameters.lr.max=0.1")
            ->required();
      });

  Add(*noun, chosen, "rm", "delete sweeps that have ended, with their checkpoints and logs", Rm,
      [](CLI::App& verb, SweepFlags& flags) {
        verb.add_option("SWEEP", flags.ids, "such as s1")->required();
      });

  CLI::App* const verb =
      noun->add_subcommand("validate", "check a sweep file without a server; print it resolved");
  auto flags = std::make_shared<ValidateFlags>();
  AddSweepFile(*verb, flags->file);
  flags->output.AddTo(*verb);
  verb->callback([flags, &chosen] {
    chosen = [flags](Console& console) { return Validate(*flags, console); };
  });
}

}  // namespace attune::cli
