#include "cli/views/sweep_view.h"

#include <algorithm>
#include <cmath>

#include "cli/text/numbers.h"
#include "cli/text/table.h"
#include "cli/text/width.h"
#include "cli/watch/model.h"
#include "cli/watch/outcome.h"

namespace attune::cli {
namespace {

constexpr int kBarWidth = 30;  // for an importance of 100 %
constexpr char kBeginsWith[] = "begins with";

// Columns for everything except the metric and the parameters.
int SweepNameColumns(const Json& sweep) {
  const std::string metric = Clean(TextAt(At(sweep, "metric"), "name"));
  int columns = std::max(kNameColumnsMin, DisplayWidth(metric));
  for (const Json& parameter : At(sweep, "parameters"))
    columns = std::max(columns, DisplayWidth(Clean(TextAt(parameter, "name"))));
  if (!At(sweep, "warm_start").empty()) columns = std::max(columns, DisplayWidth(kBeginsWith));
  return WidestKey(At(At(sweep, "best"), "config"), columns);
}

int64_t Ended(const Json& counts) {
  int64_t ended = 0;
  for (const auto& [state, count] : counts.items()) {
    if (IsFinal(state) && count.is_number()) ended += count.get<int64_t>();
  }
  return ended;
}

std::string ProgressText(const Json& sweep) {
  std::string text = std::to_string(Ended(At(sweep, "trials")));
  if (const int64_t max = WholeAt(sweep, "max_trials"); max > 0) text += '/' + std::to_string(max);
  return text;
}

std::string BestValue(const Json& sweep) {
  const std::optional<double> value = NumberOf(At(At(sweep, "best"), "value"));
  return value.has_value() ? FormatNumber(*value) : "";
}

std::string StateCounts(const Json& counts) {
  std::string text;
  for (const auto& [state, count] : counts.items()) {
    if (!count.is_number() || count.get<int64_t>() == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(count.get<int64_t>()) + ' ' + state;
  }
  return text.empty() ? "none yet" : text;
}

// The limits that are set: "max_trials 40, max_time 2h".
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

std::string RangeText(const Json& parameter) {
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
  return text;
}

std::string Words(const Json& words) {
  std::string text;
  for (const Json& word : words) {
    if (word.is_string()) text += (text.empty() ? "" : ", ") + word.get<std::string>();
  }
  return text;
}

// accuracy (max), latency_ms (min)
std::string Metrics(const Json& sweep) {
  std::string text;
  for (const Json& metric : At(sweep, "metrics"))
    text +=
        (text.empty() ? "" : ", ") + TextAt(metric, "name") + " (" + TextAt(metric, "mode") + ')';
  if (!text.empty()) return text;
  const Json& metric = At(sweep, "metric");
  return TextAt(metric, "name") + " (" + TextAt(metric, "mode") + ')';
}

// latency_ms ≤ 20, recall 0.5 … 1
std::string Constraints(const Json& constraints) {
  std::string text;
  for (const auto& [metric, bounds] : constraints.items()) {
    const std::optional<double> min = NumberOf(At(bounds, "min"));
    const std::optional<double> max = NumberOf(At(bounds, "max"));
    text += (text.empty() ? "" : ", ") + metric + ' ';
    if (min && max) {
      text += FormatNumber(*min) + " … " + FormatNumber(*max);
    } else {
      text += min ? "≥ " + FormatNumber(*min) : "≤ " + FormatNumber(max.value_or(0));
    }
  }
  return text;
}

// The front of a sweep with several metrics, sorted by the first.
std::vector<std::string> FrontSection(const Json& sweep, const Style& style) {
  std::vector<Json> front;
  for (const Json& report : At(sweep, "front")) front.push_back(report);
  if (front.empty()) return {};
  const bool larger = TextAt(At(sweep, "metric"), "mode") == "max";
  std::ranges::stable_sort(front, [&](const Json& a, const Json& b) {
    const double one = NumberOf(At(a, "value")).value_or(0);
    const double other = NumberOf(At(b, "value")).value_or(0);
    return larger ? one > other : one < other;
  });
  std::vector<Column> columns = {{"TRIAL", true}, {"STEP", true}};
  for (const Json& metric : At(sweep, "metrics")) columns.push_back({TextAt(metric, "name"), true});
  columns.push_back({"CONFIGURATION"});
  Table table(columns);
  for (const Json& report : front) {
    std::vector<Cell> cells = {std::to_string(WholeAt(report, "trial")),
                               std::to_string(WholeAt(report, "step"))};
    for (const Json& value : At(report, "values"))
      cells.push_back(FormatNumber(NumberOf(value).value_or(0)));
    cells.push_back(FormatConfigBriefly(At(report, "config")));
    table.Add(cells);
  }
  std::vector<std::string> lines = {"", style.Paint(Colour::kBold, "front")};
  for (std::string& line : table.Lines(style, 0)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace

std::vector<std::string> ImportanceTable(const Json& importance, const Style& style, int width) {
  Table table({{"PARAMETER"}, {"SHARE", true}, {""}});
  for (const Json& parameter : At(importance, "parameters")) {
    const double share = NumberOf(At(parameter, "importance")).value_or(0);
    std::string bar;
    for (int i = 0; i < std::lround(share * kBarWidth); ++i) bar += "█";
    table.Add({Clean(TextAt(parameter, "name")),
               std::to_string(std::lround(share * 100)) + "%",
               {bar, Colour::kBlue}});
  }
  std::vector<std::string> lines = table.Lines(style, width);
  lines.push_back(
      style.Paint(Colour::kDim, "the best " + std::to_string(WholeAt(importance, "best")) + " of " +
                                    std::to_string(WholeAt(importance, "trials")) + " trials in " +
                                    Clean(TextAt(importance, "metric")) + ", held against all"));
  return lines;
}

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
               ProgressText(sweep),
               BestValue(sweep),
               TextAt(At(sweep, "metric"), "name"),
               FormatDuration(SweepSeconds(sweep, now)),
               TextAt(sweep, "name")});
  }
  return table.Lines(style, width);
}

std::vector<std::string> SweepSections(const Json& sweep, double now, const Style& style) {
  std::vector<std::string> lines;
  const int columns = SweepNameColumns(sweep);
  const auto field = [&](const std::string& name, const std::string& value) {
    if (!value.empty())
      lines.push_back(style.Paint(Colour::kDim, Pad(Clean(name), columns)) + "  " + Clean(value));
  };
  const std::string state = TextAt(sweep, "state");
  lines.push_back(
      style.Paint(Colour::kBold, TextAt(sweep, "id") + ' ' + Clean(TextAt(sweep, "name"))) + "  " +
      style.Paint(ColourOfState(state), state));
  field("reason", TextAt(sweep, "reason"));
  if (!TextAt(sweep, "stopping").empty()) field("ending as", TextAt(sweep, "stopping"));
  field("waiting", TextAt(sweep, "waiting"));
  field("tags", Words(At(sweep, "tags")));
  field("owner", TextAt(sweep, "owner"));
  field("created", TextAt(sweep, "created"));
  if (const Json& edit = At(sweep, "edited"); edit.is_object())
    field("edited", TextAt(edit, "time") + " by " + TextAt(edit, "actor") + ": " +
                        Words(At(edit, "changes")));
  field("time", FormatDuration(SweepSeconds(sweep, now)));
  const Json& metric = At(sweep, "metric");
  field(At(sweep, "metrics").size() > 1 ? "metrics" : "metric", Metrics(sweep));
  field("within", Constraints(At(sweep, "constraints")));
  field("searcher", TextAt(sweep, "searcher"));
  for (const Json& taken : At(sweep, "warm_start")) field(kBeginsWith, taken.get<std::string>());
  const std::string time = TextAt(sweep, "time_attr");
  const std::string rungs = List(At(sweep, "rungs"));
  field("scheduler", TextAt(sweep, "scheduler") + (rungs.empty() ? "" : ", rungs " + rungs) +
                         (time.empty() ? "" : " of " + time));
  field("limits", Limits(sweep));
  if (At(sweep, "external") == Json(true)) {
    field("program", "none: trials are asked for and told");
  } else {
    const int64_t workers = WholeAt(sweep, "workers", 1);
    const int64_t least = WholeAt(sweep, "min_workers", workers);
    field("workers", (least < workers ? std::to_string(least) + " to " : "") +
                         std::to_string(workers) + " a trial");
  }
  if (const int64_t priority = WholeAt(sweep, "priority"); priority != 0) {
    field("priority", std::to_string(priority));
  }
  field("trials", StateCounts(At(sweep, "trials")));

  if (At(sweep, "metrics").size() > 1) {
    const std::vector<std::string> front = FrontSection(sweep, style);
    lines.insert(lines.end(), front.begin(), front.end());
  } else if (const Json& best = At(sweep, "best"); best.is_object()) {
    lines.push_back("");
    lines.push_back(style.Paint(Colour::kBold, "best") + "  trial " +
                    std::to_string(WholeAt(best, "trial")) + ", step " +
                    std::to_string(WholeAt(best, "step")));
    field(TextAt(metric, "name"), BestValue(sweep));
    for (const auto& [name, value] : At(best, "config").items()) field(name, FormatSetting(value));
    field("checkpoint", CheckpointOf(best));
  }
  if (const Json& parameters = At(sweep, "parameters"); parameters.is_array()) {
    lines.push_back("");
    lines.push_back(style.Paint(Colour::kBold, "parameters"));
    for (const Json& parameter : parameters) field(TextAt(parameter, "name"), RangeText(parameter));
  }
  return lines;
}

}  // namespace attune::cli
