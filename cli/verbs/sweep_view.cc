#include "cli/verbs/sweep_view.h"

#include "cli/text/numbers.h"
#include "cli/text/table.h"
#include "cli/text/width.h"
#include "cli/watch/model.h"

namespace attune::cli {
namespace {

int64_t Ended(const Json& counts) {
  int64_t ended = 0;
  for (const auto& [state, count] : counts.items()) {
    if (IsFinal(state) && count.is_number()) ended += count.get<int64_t>();
  }
  return ended;
}

std::string Progress(const Json& sweep) {
  std::string text = std::to_string(Ended(At(sweep, "trials")));
  if (const int64_t max = WholeAt(sweep, "max_trials"); max > 0) text += '/' + std::to_string(max);
  return text;
}

std::string BestValue(const Json& sweep) {
  const std::optional<double> value = NumberOf(At(At(sweep, "best"), "value"));
  return value.has_value() ? FormatNumber(*value) : "";
}

std::string Counts(const Json& counts) {
  std::string text;
  for (const auto& [state, count] : counts.items()) {
    if (!count.is_number() || count.get<int64_t>() == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(count.get<int64_t>()) + ' ' + state;
  }
  return text.empty() ? "none yet" : text;
}

// The limits there are: max_trials 40, max_time 2h.
std::string Limits(const Json& sweep) {
  std::string text;
  const auto add = [&](const std::string& name, const std::string& value) {
    text += (text.empty() ? "" : ", ") + name + ' ' + value;
  };
  if (const int64_t trials = WholeAt(sweep, "max_trials"); trials > 0) {
    add("max_trials", std::to_string(trials));
  }
  for (const auto& [name, limit] : At(sweep, "limits").items()) {
    const double value = NumberOf(limit).value_or(0);
    const bool is_time = name.ends_with("time");
    if (limit.is_null() || (value == 0 && name != "target")) continue;
    add(name, is_time ? FormatDuration(value) : FormatNumber(value));
  }
  return text;
}

std::string Range(const Json& parameter) {
  const std::string type = TextAt(parameter, "type");
  if (type == "constant") return FormatSetting(At(parameter, "value"));
  if (const Json& values = At(parameter, "values"); values.is_array()) {
    std::string text;
    for (const Json& value : values) text += (text.empty() ? "" : ", ") + FormatSetting(value);
    return text;
  }
  std::string text =
      FormatSetting(At(parameter, "min")) + " … " + FormatSetting(At(parameter, "max"));
  if (const Json& step = At(parameter, "step"); step.is_number()) {
    text += ", step " + FormatSetting(step);
  }
  if (TextAt(parameter, "scale") == "log") text += ", log";
  return text + " (" + type + ')';
}

std::string List(const Json& numbers) {
  std::string text;
  for (const Json& number : numbers) text += (text.empty() ? "" : ", ") + FormatSetting(number);
  return text.empty() ? "none" : text;
}

}  // namespace

double SweepSeconds(const Json& sweep, double now) {
  const std::optional<double> created = ParseTime(TextAt(sweep, "created"));
  if (!created.has_value()) return 0;
  return ParseTime(TextAt(sweep, "ended")).value_or(now) - *created;
}

std::vector<std::string> SweepTable(const Json& sweeps, double now, const Style& style, int width) {
  Table table({{"SWEEP"},
               {"STATE"},
               {"TRIALS", true},
               {"BEST", true},
               {"METRIC"},
               {"TIME", true},
               {"NAME"}});
  for (const Json& sweep : sweeps) {
    const std::string state = TextAt(sweep, "state");
    table.Add({TextAt(sweep, "id"),
               {state, ColourOfState(state)},
               Progress(sweep),
               BestValue(sweep),
               TextAt(At(sweep, "metric"), "name"),
               FormatDuration(SweepSeconds(sweep, now)),
               TextAt(sweep, "name")});
  }
  return table.Lines(style, width);
}

std::vector<std::string> SweepSections(const Json& sweep, double now, const Style& style) {
  std::vector<std::string> lines;
  const auto field = [&](const std::string& name, const std::string& value) {
    if (!value.empty())
      lines.push_back(style.Paint(Colour::kDim, Pad(name, 10)) + "  " + Clean(value));
  };
  const std::string state = TextAt(sweep, "state");
  lines.push_back(
      style.Paint(Colour::kBold, TextAt(sweep, "id") + ' ' + Clean(TextAt(sweep, "name"))) + "  " +
      style.Paint(ColourOfState(state), state));
  field("reason", TextAt(sweep, "reason"));
  if (!TextAt(sweep, "stopping").empty()) field("ending as", TextAt(sweep, "stopping"));
  field("waiting", TextAt(sweep, "waiting"));
  field("created", TextAt(sweep, "created"));
  field("time", FormatDuration(SweepSeconds(sweep, now)));
  const Json& metric = At(sweep, "metric");
  field("metric", TextAt(metric, "name") + " (" + TextAt(metric, "mode") + ')');
  field("searcher", TextAt(sweep, "searcher"));
  field("scheduler", TextAt(sweep, "scheduler") + ", rungs " + List(At(sweep, "rungs")));
  field("limits", Limits(sweep));
  if (At(sweep, "external") == Json(true)) {
    field("program", "none: trials are asked for and told");
  } else {
    field("workers", std::to_string(WholeAt(sweep, "workers", 1)) + " a trial");
  }
  if (const int64_t priority = WholeAt(sweep, "priority"); priority != 0) {
    field("priority", std::to_string(priority));
  }
  field("trials", Counts(At(sweep, "trials")));

  if (const Json& best = At(sweep, "best"); best.is_object()) {
    lines.push_back("");
    lines.push_back(style.Paint(Colour::kBold, "best") + "  trial " +
                    std::to_string(WholeAt(best, "trial")) + ", step " +
                    std::to_string(WholeAt(best, "step")));
    field(TextAt(metric, "name"), BestValue(sweep));
    for (const auto& [name, value] : At(best, "config").items()) field(name, FormatSetting(value));
    field("checkpoint", TextAt(best, "checkpoint"));
  }
  if (const Json& parameters = At(sweep, "parameters"); parameters.is_array()) {
    lines.push_back("");
    lines.push_back(style.Paint(Colour::kBold, "parameters"));
    for (const Json& parameter : parameters) field(TextAt(parameter, "name"), Range(parameter));
  }
  return lines;
}

}  // namespace attune::cli
