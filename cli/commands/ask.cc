#include "base/result.h"
#include "cli/commands/command.h"
#include "cli/json.h"
#include "cli/text/numbers.h"
#include "cli/text/width.h"

namespace attune::cli {
namespace {

constexpr const char* kLease =
    "Time without a report after which another client gets the trial (default: 1h)";

struct AskFlags : SweepNameFlags {
  std::string lease;

  void AddTo(CLI::App& command) {
    command.add_option("--lease", lease, kLease)->type_name("DURATION");
    SweepNameFlags::AddTo(command);
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

  void AddTo(CLI::App& command);
};

void TellFlags::AddTo(CLI::App& command) {
  command.add_option("--epoch", epoch, "Epoch that ask printed")
      ->required()
      ->check(PositiveNumber())
      ->type_name("N");
  auto* const at_step = command.add_option("--step", step, "Step of the report")
                            ->check(PositiveNumber())
                            ->type_name("N");
  auto* const metric =
      command.add_option("-m,--metric", metrics, "Metric, such as loss=0.3 (repeatable)")
          ->type_name("NAME=VALUE")
          ->allow_extra_args(false);
  command.add_option("--seconds", seconds, "Training time since the ask")
      ->check(NonNegativeNumber())
      ->type_name("SECONDS");
  auto* const is_done = command.add_flag("--completed", completed, "The trial is complete");
  auto* const has_failed = command.add_flag("--failed", failed, "The trial failed");
  auto* const still_runs =
      command.add_flag("--running", running, "The trial still runs; renew its lease");
  command.add_option("--message", message, "Reason of the failure")
      ->type_name("TEXT")
      ->needs(has_failed);
  auto* const asks_next =
      command.add_flag("--ask", ask, "Also ask for the next trial, unless this one continues");
  command.add_option("--lease", lease, kLease)->type_name("DURATION")->needs(asks_next);
  is_done->excludes(has_failed)->excludes(at_step)->excludes(metric);
  has_failed->excludes(at_step)->excludes(metric);
  still_runs->excludes(is_done)->excludes(has_failed)->excludes(at_step)->excludes(metric);
  TrialNameFlags::AddTo(command);
}

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
  const auto offer = api.AskTrial(flags.id, {.lease = OmitIfEmpty(flags.lease)});
  if (!offer.ok()) return Fail(console, offer.error());
  if (!flags.output.json()) return PrintOffer(flags.id, *offer, console);
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
      return Invalid("-m: " + name + ": `" + FormatSetting(value) +
                     "` is not a number; write it as " + name + "=0.3");
    metrics[name] = *number;
  }
  return metrics;
}

// The final state of the trial, if a flag gives it; otherwise a report.
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

}  // namespace

void AddAskCommands(CLI::App& app, Action& chosen) {
  AddCommand<AskFlags>(app, chosen, "ask", "Get the next trial of a sweep that you train yourself",
                       Ask);
  AddCommand<TellFlags>(app, chosen, "tell",
                        "Report metrics of a trial from ask and print the verdict", Tell);
}

}  // namespace attune::cli
