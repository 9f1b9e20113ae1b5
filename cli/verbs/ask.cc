#include "cli/json.h"
#include "cli/text/numbers.h"
#include "cli/text/width.h"
#include "cli/verbs/verb.h"

namespace attune::cli {
namespace {

constexpr const char* kLease =
    "the trial goes to another asker when nothing is told of it for so long";

struct AskFlags : SweepNameFlags {
  std::string lease;

  void AddTo(CLI::App& verb) {
    verb.add_option("--lease", lease, kLease)->type_name("DURATION");
    SweepNameFlags::AddTo(verb);
  }
};

struct TellFlags : TrialNameFlags {
  int64_t epoch = 0;
  int64_t step = 0;
  std::vector<std::string> metrics;
  std::optional<double> seconds;
  bool completed = false;
  bool failed = false;
  bool running = false;
  std::string message;
  bool ask = false;
  std::string lease;

  void AddTo(CLI::App& verb);
};

void TellFlags::AddTo(CLI::App& verb) {
  verb.add_option("--epoch", epoch, "as ask said")->required()->check(PositiveNumber());
  auto* const at_step =
      verb.add_option("--step", step, "the step of the report")->check(PositiveNumber());
  auto* const metric = verb.add_option("-m,--metric", metrics, "such as loss=0.3")
                           ->type_name("NAME=VALUE")
                           ->allow_extra_args(false);
  verb.add_option("--seconds", seconds, "training time since the trial was asked for")
      ->check(NonNegativeNumber());
  auto* const is_done = verb.add_flag("--completed", completed, "the trial is done");
  auto* const has_failed = verb.add_flag("--failed", failed, "the trial has failed");
  auto* const still_runs =
      verb.add_flag("--running", running, "there is nothing new, but it still runs");
  verb.add_option("--message", message, "why it failed")->needs(has_failed);
  auto* const asks_next =
      verb.add_flag("--ask", ask, "unless the trial goes on: ask for the next one as well");
  verb.add_option("--lease", lease, kLease)->type_name("DURATION")->needs(asks_next);
  is_done->excludes(has_failed)->excludes(at_step)->excludes(metric);
  has_failed->excludes(at_step)->excludes(metric);
  still_runs->excludes(is_done)->excludes(has_failed)->excludes(at_step)->excludes(metric);
  TrialNameFlags::AddTo(verb);
}

// The answer to who asks.
ExitCode PrintTrial(const std::string& sweep, const Json& answer, Console& console) {
  if (At(answer, "trial").is_null()) {
    console.err.Print("sweep " + sweep + " is " + TextAt(answer, "state") +
                      " and has no trial to give: " + TextAt(answer, "reason"));
    return ExitCode::kNotFound;
  }
  const int width = WidestKey(At(answer, "config"), kNameColumnsMin);
  const auto field = [&](const std::string& name, const std::string& value) {
    console.out.Print(Pad(Clean(name), width) + "  " + Clean(value));
  };
  field("trial", sweep + '/' + std::to_string(WholeAt(answer, "trial")));
  for (const char* key : {"epoch", "attempt", "seed", "milestone", "max_step"}) {
    field(key, std::to_string(WholeAt(answer, key)));
  }
  for (const auto& [name, value] : At(answer, "config").items()) {
    field(name, FormatSetting(value));
  }
  return ExitCode::kSuccess;
}

ExitCode Ask(const AskFlags& flags, Console& console, Api& api) {
  const Result<Json> answer = api.AskTrial(flags.id, flags.lease);
  if (!answer.ok()) return Fail(console, answer.error());
  if (!flags.output.json()) return PrintTrial(flags.id, *answer, console);
  console.out.Print(Dump(*answer, 2));
  return At(*answer, "trial").is_null() ? ExitCode::kNotFound : ExitCode::kSuccess;
}

// What is told: the end of the trial, or else a report.
Result<Json> ReadTell(const TellFlags& flags) {
  Json body = {{"epoch", flags.epoch}};
  if (flags.ask) body["ask"] = true;
  if (!flags.lease.empty()) body["lease"] = flags.lease;
  if (flags.completed || flags.failed || flags.running) {
    body["state"] = flags.completed ? "completed" : flags.failed ? "failed" : "running";
    if (!flags.message.empty()) body["message"] = flags.message;
    return body;
  }
  const Result<Json> metrics = ReadAssignments(flags.metrics, "-m");
  if (!metrics.ok()) return metrics.error();
  if (flags.step > 0) body["step"] = flags.step;
  body["metrics"] = *metrics;
  if (flags.seconds) body["seconds"] = *flags.seconds;
  return body;
}

ExitCode Tell(const TellFlags& flags, Console& console, Api& api) {
  const Result<TrialName> name = TrialName::Parse(flags.trial);
  if (!name.ok()) return Fail(console, name.error());
  const Result<Json> body = ReadTell(flags);
  if (!body.ok()) return Fail(console, body.error());
  const Result<Json> answer = api.TellTrial(*name, *body);
  if (!answer.ok()) return Fail(console, answer.error());
  const bool asked = answer->contains("next");
  if (flags.output.json()) {
    console.out.Print(Dump(*answer, 2));
    return asked && At(At(*answer, "next"), "trial").is_null() ? ExitCode::kNotFound
                                                               : ExitCode::kSuccess;
  }
  if (answer->contains("verdict")) {
    console.out.Print(TextAt(*answer, "verdict"));
    console.err.Print(TextAt(*answer, "reason"));
  }
  return asked ? PrintTrial(name->sweep, At(*answer, "next"), console) : ExitCode::kSuccess;
}

}  // namespace

void AddAskVerbs(CLI::App& app, Action& chosen) {
  AddVerb<AskFlags>(app, chosen, "ask",
                    "the next trial of a sweep without a program, to train it yourself", Ask);
  AddVerb<TellFlags>(app, chosen, "tell", "what an asked trial came to; says what next", Tell);
}

}  // namespace attune::cli
