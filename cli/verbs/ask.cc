#include "base/result.h"
#include "cli/json.h"
#include "cli/text/numbers.h"
#include "cli/text/width.h"
#include "cli/verbs/verb.h"

namespace attune::cli {
namespace {

struct AskFlags : ClientFlags {
  std::string sweep;
  std::string lease;
};

struct TellFlags : ClientFlags {
  std::vector<std::string> trial;
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
};

constexpr const char* kLease =
    "the trial goes to another asker when nothing is told of it for so long";

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
  const Result<Json> answer = api.AskTrial(flags.sweep, flags.lease);
  if (!answer.ok()) return Fail(console, answer.error());
  if (!flags.output.json()) return PrintTrial(flags.sweep, *answer, console);
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

template <class Flags>
void Add(CLI::App& verb, Action& chosen, std::shared_ptr<Flags> flags,
         ExitCode (*act)(const Flags&, Console&, Api&)) {
  flags->AddTo(verb);
  verb.callback([flags, act, &chosen] {
    chosen = [flags, act](Console& console) {
      return WithServer(*flags, console, [&](Api& api) { return act(*flags, console, api); });
    };
  });
}

}  // namespace

void AddAskVerbs(CLI::App& app, Action& chosen) {
  CLI::App* const ask = app.add_subcommand(
      "ask", "the next trial of a sweep without a program, to train it yourself");
  auto ask_flags = std::make_shared<AskFlags>();
  ask->add_option("SWEEP", ask_flags->sweep, "such as s1")->required();
  ask->add_option("--lease", ask_flags->lease, kLease)->type_name("DURATION");
  Add(*ask, chosen, ask_flags, Ask);

  CLI::App* const tell = app.add_subcommand("tell", "what an asked trial came to; says what next");
  auto flags = std::make_shared<TellFlags>();
  tell->add_option("TRIAL", flags->trial, "SWEEP/NUMBER, such as s1/17")
      ->required()
      ->expected(1, 2);
  tell->add_option("--epoch", flags->epoch, "as ask said")->required()->check(PositiveNumber());
  auto* const step =
      tell->add_option("--step", flags->step, "the step of the report")->check(PositiveNumber());
  auto* const metric = tell->add_option("-m,--metric", flags->metrics, "such as loss=0.3")
                           ->type_name("NAME=VALUE")
                           ->allow_extra_args(false);
  tell->add_option("--seconds", flags->seconds, "training time since the trial was asked for")
      ->check(NonNegativeNumber());
  auto* const completed = tell->add_flag("--completed", flags->completed, "the trial is done");
  auto* const failed = tell->add_flag("--failed", flags->failed, "the trial has failed");
  auto* const running =
      tell->add_flag("--running", flags->running, "there is nothing new, but it still runs");
  tell->add_option("--message", flags->message, "why it failed")->needs(failed);
  auto* const next =
      tell->add_flag("--ask", flags->ask, "unless the trial goes on: ask for the next one as well");
  tell->add_option("--lease", flags->lease, kLease)->type_name("DURATION")->needs(next);
  completed->excludes(failed)->excludes(step)->excludes(metric);
  failed->excludes(step)->excludes(metric);
  running->excludes(completed)->excludes(failed)->excludes(step)->excludes(metric);
  Add(*tell, chosen, flags, Tell);
}

}  // namespace attune::cli
