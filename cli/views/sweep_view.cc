#include "cli/views/sweep_view.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/lines.h"
#include "cli/text/numbers.h"
#include "cli/text/table.h"
#include "cli/text/width.h"
#include "cli/watch/model.h"
#include "cli/watch/outcome.h"

namespace attune::cli {
namespace {

constexpr int kBarWidth = 30;  // for an importance of 100 %
constexpr char kWarmStart[] = "warm start";

// Columns for everything except the metric and the parameters.
int SweepNameColumns(const rest::SweepDetail& sweep) {
  int columns = std::max(kNameColumnsMin, DisplayWidth(Clean(sweep.metric.name)));
  for (const rest::Parameter& parameter : sweep.parameters)
    columns = std::max(columns, DisplayWidth(Clean(parameter.name)));
  if (!sweep.warm_start.empty()) columns = std::max(columns, DisplayWidth(kWarmStart));
  return sweep.best.has_value() ? WidestKey(sweep.best->config, columns) : columns;
}

std::string ProgressText(const rest::Sweep& sweep) {
  std::string text = std::to_string(CountEnded(sweep.trials));
  if (sweep.max_trials > 0) text += '/' + std::to_string(sweep.max_trials);
  return text;
}

std::string BestValue(const rest::Sweep& sweep) {
  return sweep.best.has_value() ? FormatNumber(sweep.best->value) : "";
}

std::string StateCounts(const rest::TrialCounts& counts) {
  std::vector<std::string> texts;
  for (const auto& [state, count] : CountsByState(counts)) {
    if (count > 0) texts.push_back(std::to_string(count) + ' ' + state);
  }
  return texts.empty() ? "none yet" : JoinWithCommas(texts);
}

// The limits that are set: "max_trials 40, max_time 2h".
std::string Limits(const rest::Sweep& sweep) {
  std::vector<std::string> texts;
  const auto add = [&](const std::string& name, double limit, std::string (*format)(double)) {
    if (limit != 0) texts.push_back(name + ' ' + format(limit));
  };
  const rest::Limits& limits = sweep.limits;
  if (sweep.max_trials > 0) texts.push_back("max_trials " + std::to_string(sweep.max_trials));
  if (limits.target.has_value()) texts.push_back("target " + FormatNumber(*limits.target));
  add("max_time", limits.max_time, FormatDuration);
  add("max_gpu_hours", limits.max_gpu_hours, FormatNumber);
  add("patience", static_cast<double>(limits.patience), FormatNumber);
  add("max_trial_time", limits.max_trial_time, FormatDuration);
  add("trial_patience", static_cast<double>(limits.trial_patience), FormatNumber);
  return JoinWithCommas(texts);
}

std::string RangeText(const rest::Parameter& parameter) {
  if (parameter.value.has_value()) return FormatSetting(*parameter.value);
  if (parameter.values.has_value()) {
    std::vector<std::string> texts;
    for (const Json& value : *parameter.values) texts.push_back(FormatSetting(value));
    return JoinWithCommas(texts);
  }
  std::string text;
  if (parameter.min.has_value() && parameter.max.has_value())
    text = FormatSetting(*parameter.min) + " … " + FormatSetting(*parameter.max);
  if (parameter.step.has_value()) text += ", step " + FormatSetting(*parameter.step);
  if (parameter.scale == "log") text += ", log";
  return text + " (" + parameter.type + ')';
}

// accuracy (max), latency_ms (min)
std::string Metrics(const rest::Sweep& sweep) {
  std::vector<std::string> texts;
  for (const rest::Objective& metric : sweep.metrics)
    texts.push_back(metric.name + " (" + metric.mode + ')');
  return JoinWithCommas(texts);
}

// latency_ms ≤ 20, recall 0.5 … 1
std::string Constraints(const rest::Sweep& sweep) {
  std::vector<std::string> texts;
  for (const auto& [metric, bounds] : sweep.constraints) {
    const std::string min = FormatOptional(bounds.min);
    const std::string max = FormatOptional(bounds.max);
    const bool is_range = !min.empty() && !max.empty();
    texts.push_back(metric + ' ' +
                    (is_range      ? min + " … " + max
                     : min.empty() ? "≤ " + max
                                   : "≥ " + min));
  }
  return JoinWithCommas(texts);
}

// The Pareto front of a sweep with several metrics, sorted by the first.
std::vector<std::string> FrontSection(const rest::Sweep& sweep, const Style& style) {
  std::vector<rest::Best> front = sweep.pareto_front;
  if (front.empty()) return {};
  std::ranges::stable_sort(front, [&](const rest::Best& a, const rest::Best& b) {
    return sweep.metric.mode == "max" ? a.value > b.value : a.value < b.value;
  });
  std::vector<Column> columns = {{"TRIAL", true}, {"STEP", true}};
  for (const rest::Objective& metric : sweep.metrics) columns.push_back({metric.name, true});
  columns.push_back({"CONFIGURATION"});
  Table table(columns);
  for (const rest::Best& report : front) {
    std::vector<Cell> cells = {std::to_string(report.trial), std::to_string(report.step)};
    for (const double value : report.values) cells.push_back(FormatNumber(value));
    cells.push_back(FormatConfigBriefly(report.config));
    table.Add(cells);
  }
  std::vector<std::string> lines = {"", style.Paint(Colour::kBold, "Pareto front")};
  for (std::string& line : table.Lines(style, 0)) lines.push_back(std::move(line));
  return lines;
}

// The best report of a sweep with one metric.
template <class AddField>
void AddBestReport(const rest::Sweep& sweep, const Style& style, std::vector<std::string>& lines,
                   AddField field) {
  if (!sweep.best.has_value()) return;
  const rest::Best& best = *sweep.best;
  lines.push_back("");
  lines.push_back(style.Paint(Colour::kBold, "best") + "  trial " + std::to_string(best.trial) +
                  ", step " + std::to_string(best.step));
  field(sweep.metric.name, BestValue(sweep));
  for (const auto& [name, value] : best.config.items()) field(name, FormatSetting(value));
  field("checkpoint", CheckpointOf(best));
}

std::string SchedulerText(const rest::Sweep& sweep) {
  const std::string rungs = JoinWithCommas(sweep.rungs);
  return sweep.scheduler + (rungs.empty() ? "" : ", rungs " + rungs) +
         (sweep.time_attr.empty() ? "" : " of " + sweep.time_attr);
}

std::string WorkersText(const rest::Sweep& sweep) {
  return (sweep.min_workers < sweep.workers ? std::to_string(sweep.min_workers) + " to " : "") +
         std::to_string(sweep.workers) + " per trial";
}

std::string HoursOf(const rest::SweepCost& cost) {
  return cost.resource == "gpu" ? " GPU hours" : " worker hours";
}

// "12.50 EUR"
std::string MoneyText(const rest::SweepPrice& price, double amount) {
  const std::string money = FormatHundredths(amount);
  return price.currency.empty() ? money : money + ' ' + Clean(price.currency);
}

std::string CodeText(const rest::SweepCode& code) {
  if (code.commit.empty()) return code.digest;
  return code.digest + ", commit " + code.commit + (code.dirty ? " with changes" : "");
}

}  // namespace

std::vector<std::string> ImportanceTable(const rest::Importance& importance, const Style& style,
                                         int width) {
  Table table({{"PARAMETER"}, {"SHARE", true}, {"INTERVAL", true}, {""}});
  for (const rest::ParameterImportance& parameter : importance.parameters) {
    std::string bar;
    for (int i = 0; i < std::lround(parameter.importance * kBarWidth); ++i) bar += "█";
    table.Add(
        {Clean(parameter.name),
         FormatPercent(parameter.importance),
         std::to_string(std::lround(parameter.low * 100)) + "–" + FormatPercent(parameter.high),
         {bar, Colour::kBlue}});
  }
  std::vector<std::string> lines = table.Lines(style, width);
  lines.push_back(style.Paint(Colour::kDim, "the best " + std::to_string(importance.best) + " of " +
                                                FormatCount(importance.trials, "trial") + " in " +
                                                Clean(importance.metric) + ", up to step " +
                                                std::to_string(importance.step) +
                                                ", compared with all"));
  return lines;
}

std::vector<std::string> ActivityTable(const rest::Activity& activity, const Style& style,
                                       int width) {
  constexpr size_t kSeconds = std::string_view("2026-11-29T10:00:00").size();
  Table table({{"TIME"}, {"ACTOR"}, {"ACTION"}, {"TRIAL", true}, {"DETAIL"}});
  for (const rest::UserAction& action : activity.actions) {
    table.Add({action.time.substr(0, kSeconds), Clean(action.actor), action.action,
               action.trial ? std::to_string(*action.trial) : "", Clean(action.detail)});
  }
  return table.Lines(style, width);
}

double SweepSeconds(const rest::Sweep& sweep, double now) {
  const std::optional<double> created = ParseTime(sweep.created);
  if (!created.has_value()) return 0;
  return ParseTime(sweep.ended.value_or("")).value_or(now) - *created;
}

std::vector<std::string> SweepTable(const std::vector<rest::Sweep>& sweeps, double now,
                                    const Style& style, int width) {
  Table table({{"SWEEP"},
               {"STATE"},
               {"TRIALS", true},
               {"BEST", true},
               {"METRIC"},
               {"TIME", true},
               {"NAME"}});
  for (const rest::Sweep& sweep : sweeps) {
    table.Add({sweep.id,
               {sweep.state, ColourOfState(sweep.state)},
               ProgressText(sweep),
               BestValue(sweep),
               sweep.metric.name,
               FormatDuration(SweepSeconds(sweep, now)),
               sweep.name});
  }
  return table.Lines(style, width);
}

std::string CostText(const rest::SweepCost& cost) {
  std::string text = FormatNumber(cost.used_hours) + HoursOf(cost) + " used";
  if (cost.price.has_value()) text += " (" + MoneyText(*cost.price, cost.price->used) + ")";
  if (cost.wasted_hours > 0) text += "; " + FormatNumber(cost.wasted_hours) + " wasted";
  if (cost.saved_hours.value_or(0) > 0)
    text += "; about " + FormatNumber(*cost.saved_hours) + " saved by stopping trials early";
  return text;
}

std::vector<std::string> CostSections(const rest::SweepCost& cost, const Style& style) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& name, std::optional<double> hours,
                       std::optional<double> money, const std::string& note) {
    std::string text = hours.has_value() ? FormatNumber(*hours) + HoursOf(cost) : "unknown";
    if (cost.price.has_value() && money.has_value()) text += ", " + MoneyText(*cost.price, *money);
    lines.push_back(style.Paint(Colour::kDim, Pad(name, kNameColumnsMin)) + "  " + text + note);
  };
  const rest::SweepPrice price = cost.price.value_or(rest::SweepPrice());
  add("used", cost.used_hours, price.used,
      " in " + FormatCount(cost.attempts, "attempt") + ", " + std::to_string(cost.running) +
          " running");
  add("wasted", cost.wasted_hours, price.wasted,
      " after the last used checkpoint; " + std::to_string(cost.broken) + " failed or lost");
  add("saved", cost.saved_hours, price.saved,
      cost.saved_hours.has_value()
          ? " by stopping " + FormatCount(cost.stopped, "trial") + " early (estimate)"
          : "; the sweep has no max_step");
  return lines;
}

std::vector<std::string> SweepSections(const rest::SweepDetail& sweep,
                                       const std::optional<rest::SweepCost>& cost, double now,
                                       const Style& style) {
  std::vector<std::string> lines;
  const int columns = SweepNameColumns(sweep);
  const auto field = [&](const std::string& name, const std::string& value) {
    if (!value.empty())
      lines.push_back(style.Paint(Colour::kDim, Pad(Clean(name), columns)) + "  " + Clean(value));
  };
  lines.push_back(style.Paint(Colour::kBold, sweep.id + ' ' + Clean(sweep.name)) + "  " +
                  style.Paint(ColourOfState(sweep.state), sweep.state));
  field("reason", sweep.reason);
  field("ending as", sweep.end_state);
  field("waiting", sweep.waiting_reason);
  field("tags", JoinWithCommas(sweep.tags));
  std::string name = "note";
  for (const std::string_view line : SplitLines(sweep.note))
    field(std::exchange(name, ""), std::string(line));
  field("owner", sweep.owner);
  field("created", sweep.created);
  if (const auto& edit = sweep.edited; edit.has_value())
    field("edited", edit->time + " by " + edit->actor + ": " + JoinWithCommas(edit->changes));
  field("time", FormatDuration(SweepSeconds(sweep, now)));
  if (cost.has_value() && cost->attempts > 0) field("cost", CostText(*cost));
  const bool has_front = sweep.metrics.size() > 1;
  field(has_front ? "metrics" : "metric", Metrics(sweep));
  field("within", Constraints(sweep));
  field("searcher", sweep.searcher);
  for (const std::string& taken : sweep.warm_start) field(kWarmStart, taken);
  field("scheduler", SchedulerText(sweep));
  field("limits", Limits(sweep));
  if (sweep.external) {
    field("program", "none; trials run outside Attune (ask and tell)");
  } else {
    field("workers", WorkersText(sweep));
  }
  if (sweep.code.has_value()) field("code", CodeText(*sweep.code));
  if (sweep.priority != 0) field("priority", std::to_string(sweep.priority));
  field("trials", StateCounts(sweep.trials));

  if (has_front) {
    const std::vector<std::string> front = FrontSection(sweep, style);
    lines.insert(lines.end(), front.begin(), front.end());
  } else {
    AddBestReport(sweep, style, lines, field);
  }
  if (!sweep.parameters.empty()) {
    lines.push_back("");
    lines.push_back(style.Paint(Colour::kBold, "parameters"));
    for (const rest::Parameter& parameter : sweep.parameters)
      field(parameter.name, RangeText(parameter));
  }
  return lines;
}

}  // namespace attune::cli
