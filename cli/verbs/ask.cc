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

ExitCode CodeOfOffer(const rest::Offer& offer) {
  return offer.trial.has_value() ? ExitCode::kSuccess : ExitCode::kNotFound;
}

ExitCode PrintOffer(const std::string& sweep, const rest::Offer& offer, Console& console) {
  if (!offer.trial.has_value()) {
    console.err.Print("sweep " + sweep + " is " + offer.state +
                      " and offers no trial: " + offer.reason);
    return ExitCode::kNotFound;
  }
  const Json config = offer.config.value_or(Json::object());
  const int width = WidestKey(config, kNameColumnsMin);
  const auto field = [&](const std::string& name, const std::string& value) {
    console.out.Print(Pad(Clean(name), width) + "  " + Clean(value));
  };
  field("trial", sweep + '/' + std::to_string(*offer.trial));
  field("epoch", std::to_string(offer.epoch.value_or(0)));
  field("attempt", std::to_string(offer.attempt.value_or(0)));
  field("seed", std::to_string(offer.seed.value_or(0)));
  field("milestone", std::to_string(offer.milestone.value_or(0)));
  field("max_step", std::to_string(offer.max_step.value_or(0)));
  for (const auto& [name, value] : config.items()) field(name, FormatSetting(value));
  return ExitCode::kSuccess;
}

ExitCode Ask(const AskFlags& flags, Console& console, Api& api) {
  const auto offer = api.AskTrial(flags.sweep, {.lease = OmitIfEmpty(flags.lease)});
  if (!offer.ok()) return Fail(console, offer.error());
  if (!flags.output.json()) return PrintOffer(flags.sweep, *offer, console);
  console.out.Print(Dump(offer->document, 2));
  return CodeOfOffer(*offer);
}

Result<std::map<std::string, rest::Real>> ReadMetrics(const std::vector<std::string>& words) {
  const Result<Json> values = ReadAssignments(words, "-m");
  if (!values.ok()) return values.error();
  std::map<std::string, rest::Real> metrics;
  for (const auto& [name, value] : values->items()) {
    const Result<rest::Real> number = rest::Parse<rest::Real>(value);
    if (!number.ok())
      return Invalid("-m: " + name + ": `" + FormatSetting(value) + "` is not a number");
    metrics[name] = *number;
  }
  return metrics;
}

// The end of the trial, or else a report.
Result<rest::Tell> ReadTell(const TellFlags& flags) {
  rest::Tell tell{.epoch = flags.epoch};
  if (flags.ask) tell.ask = true;
  tell.lease = OmitIfEmpty(flags.lease);
  if (flags.completed || flags.failed || flags.running) {
    tell.state = flags.completed ? "completed" : flags.failed ? "failed" : "running";
    tell.message = OmitIfEmpty(flags.message);
    return tell;
  }
  auto metrics = ReadMetrics(flags.metrics);
  if (!metrics.ok()) return metrics.error();
  if (flags.step > 0) tell.step = flags.step;
  tell.metrics = *std::move(metrics);
  tell.seconds = flags.seconds;
  return tell;
}

ExitCode Tell(const TellFlags& flags, Console& console, Api& api) {
  const Result<TrialName> name = TrialName::Parse(flags.trial);
  if (!name.ok()) return Fail(console, name.error());
  const Result<rest::Tell> tell = ReadTell(flags);
  if (!tell.ok()) return Fail(console, tell.error());
  const auto answer = api.TellTrial(*name, *tell);
  if (!answer.ok()) return Fail(console, answer.error());
  const auto& next = answer->next;
  if (flags.output.json()) {
    console.out.Print(Dump(answer->document, 2));
    return next.has_value() ? CodeOfOffer(*next) : ExitCode::kSuccess;
  }
  if (answer->verdict.has_value()) {
    console.out.Print(*answer->verdict);
    console.err.Print(answer->reason.value_or(""));
  }
  return next.has_value() ? PrintOffer(name->sweep, *next, console) : ExitCode::kSuccess;
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
