#include "cli/views/trial_view.h"

#include <algorithm>

#include "cli/text/numbers.h"
#include "cli/text/table.h"
#include "cli/text/width.h"
#include "cli/views/failure.h"

namespace attune::cli {
namespace {

// Columns for everything except the parameters and the metrics.
int TrialNameColumns(const Json& trial) {
  return WidestKey(At(trial, "config"), WidestKey(At(trial, "metrics"), kNameColumnsMin));
}

std::string Number(const Json& json) {
  const std::optional<double> value = NumberOf(json);
  return value.has_value() ? FormatNumber(*value) : "";
}

std::string Whole(const Json& object, std::string_view key) {
  return std::to_string(WholeAt(object, key));
}

// The time between two moments of an attempt; empty while one of them is missing.
std::string Between(const Json& attempt, const char* from, const char* to) {
  const std::optional<double> start = ParseTime(TextAt(attempt, from));
  const std::optional<double> end = ParseTime(TextAt(attempt, to));
  return start.has_value() && end.has_value() ? FormatDuration(*end - *start) : "";
}

// The time from the start of the first gang to the end of the trial. If one is unknown, the time
// trained, up to the last report.
double WallSeconds(const Json& trial) {
  const Json& attempts = At(trial, "attempts_list");
  std::optional<double> start;
  if (attempts.is_array() && !attempts.empty()) {
    start = ParseTime(TextAt(attempts.front(), "started"));
  }
  const std::optional<double> end = ParseTime(TextAt(trial, "ended"));
  if (start.has_value() && end.has_value()) return *end - *start;
  return NumberOf(At(trial, "seconds")).value_or(0);
}

// What proposed the configuration, and why.
std::string Proposal(const Json& trial) {
  const std::string text = TextAt(At(trial, "rationale"), "text");
  const std::string origin = TextAt(trial, "origin");
  if (text.empty()) return origin;
  return origin == "initial_points" || origin == "enqueued" ? text : origin + ": " + text;
}

std::string Resumed(const Json& from) {
  if (from.is_null()) return "";
  if (from.is_object()) return "step " + Whole(from, "step");
  return from.is_number() ? "step " + FormatSetting(from) : FormatSetting(from);
}

class Sections {
 public:
  Sections(const Style& style, int width, int name_columns = kNameColumnsMin)
      : style_(style), width_(width), name_columns_(name_columns) {}

  void Title(const std::string& title) {
    if (!lines_.empty()) lines_.push_back("");
    lines_.push_back(style_.Paint(Colour::kBold, title));
  }
  void Line(std::string line) { lines_.push_back(std::move(line)); }
  void Field(const std::string& name, const std::string& value) {
    if (value.empty()) return;
    Line(style_.Paint(Colour::kDim, Pad(Clean(name), name_columns_)) + "  " + Clean(value));
  }
  void Add(const Table& table) {
    for (std::string& line : table.Lines(style_, width_)) lines_.push_back(std::move(line));
  }
  std::vector<std::string> Take() { return std::move(lines_); }

 private:
  const Style& style_;
  int width_;
  int name_columns_;
  std::vector<std::string> lines_;
};

// The last report, and the checkpoint that remains.
void AddMetrics(const Json& trial, Sections& sections) {
  for (const auto& [name, value] : At(trial, "metrics").items()) {
    sections.Field(name, Number(value));
  }
  sections.Field("checkpoint", TextAt(trial, "checkpoint"));
}

// How an attempt continues the one before it.
std::string Beginning(const Json& before, const Json& decisions) {
  if (before.is_null()) return "";
  const std::string outcome = TextAt(before, "outcome");
  if (outcome != "paused") return outcome.empty() ? "" : "again";
  Json last;
  for (const Json& decision : decisions) {
    if (At(decision, "attempt") == At(before, "number")) last = decision;
  }
  const std::string verdict = TextAt(last, "verdict");
  if (verdict == "exploit") return "clone";
  if (verdict == "resize") return "resized";
  return verdict == "promote" ? "promoted" : "resumed";
}

void AddAttempts(const Json& attempts, const Json& decisions, Sections& sections) {
  if (attempts.empty()) return;
  sections.Title("attempts");
  Table table({{"NO", true},
               {"AS"},
               {"STATE"},
               {"OUTCOME"},
               {"EXECUTOR"},
               {"RANKS", true},
               {"FROM"},
               {"START", true},
               {"RAN", true}});
  Json before;
  for (const Json& attempt : attempts) {
    table.Add({Whole(attempt, "number"), Beginning(before, decisions), TextAt(attempt, "state"),
               TextAt(attempt, "outcome"), TextAt(attempt, "executor"),
               std::to_string(At(attempt, "ranks").size()), Resumed(At(attempt, "resumed_from")),
               Between(attempt, "decided", "first_step"), Between(attempt, "started", "ended")});
    before = attempt;
  }
  sections.Add(table);
  // A failure is several lines: a sentence and the end of a log.
  for (const Json& attempt : attempts) {
    std::string failure = TextAt(attempt, "failure");
    if (failure.empty()) continue;
    sections.Line("attempt " + Whole(attempt, "number") + ": " + Clean(FirstLine(failure)));
    for (size_t at = failure.find('\n'); at != std::string::npos;) {
      const size_t next = failure.find('\n', at + 1);
      sections.Line("  | " + Clean(failure.substr(at + 1, next - at - 1)));
      at = next;
    }
  }
}

void AddDecisions(const Json& decisions, Sections& sections) {
  if (decisions.empty()) return;
  sections.Title("decisions");
  Table table({{"STEP", true}, {"VERDICT"}, {"RULE"}, {"WHY"}});
  for (const Json& decision : decisions) {
    table.Add({Whole(decision, "step"), TextAt(decision, "verdict"), TextAt(decision, "rule"),
               FirstLine(TextAt(decision, "reason"))});
  }
  sections.Add(table);
}

// Why the trial resumed, for each pause.
void AddPromotions(const Json& decisions, Sections& sections) {
  Table table({{"STEP", true}, {"RULE"}, {"RUNG", true}, {"PLACE"}, {"WHY"}});
  bool any = false;
  for (const Json& decision : decisions) {
    if (TextAt(decision, "verdict") != "promote") continue;
    any = true;
    const bool ranked = WholeAt(decision, "peers") > 0;
    table.Add({Whole(decision, "step"), TextAt(decision, "rule"),
               WholeAt(decision, "rung") > 0 ? Whole(decision, "rung") : "",
               ranked ? Whole(decision, "rank") + " of " + Whole(decision, "peers") : "",
               FirstLine(TextAt(decision, "reason"))});
  }
  if (!any) return;
  sections.Title("promotions");
  sections.Add(table);
}

void AddCheckpoints(const Json& checkpoints, Sections& sections) {
  if (checkpoints.empty()) return;
  sections.Title("checkpoints");
  Table table({{"STEP", true}, {"ATTEMPT", true}, {"SIZE", true}, {"KEPT"}, {"PATH"}});
  for (const Json& checkpoint : checkpoints) {
    const bool dropped = !At(checkpoint, "dropped").is_null();
    const bool pinned = At(checkpoint, "pinned") == Json(true);
    table.Add({Whole(checkpoint, "step"), Whole(checkpoint, "attempt"),
               FormatBytes(static_cast<double>(WholeAt(checkpoint, "bytes"))),
               dropped  ? "dropped"
               : pinned ? "pinned"
                        : "yes",
               TextAt(checkpoint, "path")});
  }
  sections.Add(table);
}

void AddHistory(const Json& history, Sections& sections) {
  if (history.empty()) return;
  std::vector<std::string> names;
  for (const Json& report : history) {
    for (const auto& [name, value] : At(report, "metrics").items()) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::vector<Column> columns = {{"STEP", true}, {"ATTEMPT", true}, {"SECONDS", true}};
  for (const std::string& name : names) columns.push_back({Clean(name), true});
  Table table(columns);
  for (const Json& report : history) {
    std::vector<Cell> row = {Whole(report, "step"), Whole(report, "attempt"),
                             Number(At(report, "seconds"))};
    for (const std::string& name : names) row.emplace_back(Number(At(At(report, "metrics"), name)));
    table.Add(std::move(row));
  }
  sections.Title("history");
  sections.Add(table);
}

// The scheduler with its options.
std::string PolicyOf(const Json& explanation) {
  Json policy = At(explanation, "policy");
  if (policy.is_null()) return "";
  const std::string name = TextAt(policy, "name");
  policy.erase("name");
  return Clean(name + ' ' + FormatConfigBriefly(policy) +
               (At(explanation, "policy_changed") == Json(true) ? "; edited since" : ""));
}

// The trials that it was compared with, best first.
void AddRung(const Json& explanation, int64_t number, Sections& sections) {
  const Json& decision = At(explanation, "decision");
  const Json& rung = At(explanation, "rung");
  if (rung.empty()) return;
  sections.Title("rung " + Whole(decision, "rung") + " of " + Clean(TextAt(decision, "rule")) +
                 ", as it was then");
  Table table({{""}, {"NO", true}, {"TRIAL", true}, {"VALUE", true}, {"VERDICT"}});
  int64_t place = 0;
  for (const Json& row : rung) {
    const bool its_own = WholeAt(row, "number") == number;
    const Colour colour = its_own ? Colour::kBold : Colour::kPlain;
    const std::string value = Number(At(row, "value"));
    table.Add({{its_own ? ">" : "", colour},
               {std::to_string(++place), colour},
               {Whole(row, "number"), colour},
               {value.empty() ? "nan" : value, colour},
               {TextAt(row, "verdict"), colour}});
  }
  sections.Add(table);
}

// The state of the trial since the decision; empty if the decision already says it.
std::string Since(const Json& decision, const Json& trial) {
  std::string text = TextAt(trial, "state");
  const std::string reason = FirstLine(TextAt(trial, "reason"));
  const std::string waiting = TextAt(trial, "waiting");
  const bool is_told = reason.empty() || reason == FirstLine(TextAt(decision, "reason"));
  const std::string verdict = TextAt(decision, "verdict");
  const bool went_on = text == "running" && !verdict.empty() && verdict != "continue";
  if (is_told && waiting.empty() && !went_on) return "";
  if (went_on) text += ", in attempt " + Whole(trial, "attempts");
  if (!is_told) text += ": " + reason;
  if (!waiting.empty()) text += "; " + waiting;
  return text;
}

}  // namespace

std::vector<std::string> TrialTable(const Json& trials, const std::string& metric,
                                    const Style& style, int width) {
  Table table({{"TRIAL", true},
               {"STATE"},
               {"STEP", true},
               {Clean(metric), true},
               {"BEST", true},
               {"ATTEMPTS", true},
               {"TIME", true},
               {"CONFIG"}});
  for (const Json& trial : trials) {
    const std::string state = TextAt(trial, "state");
    table.Add({Whole(trial, "number"),
               {state, ColourOfState(state)},
               Whole(trial, "step"),
               Number(At(At(trial, "metrics"), metric)),
               Number(At(trial, "best")),
               Whole(trial, "attempts"),
               FormatDuration(NumberOf(At(trial, "seconds")).value_or(0)),
               FormatConfigBriefly(At(trial, "config"))});
  }
  return table.Lines(style, width);
}

std::vector<std::string> TrialSections(const Json& trial, const Style& style, int width) {
  Sections sections(style, width, TrialNameColumns(trial));
  const std::string state = TextAt(trial, "state");
  sections.Line(
      style.Paint(Colour::kBold, "trial " + TextAt(trial, "sweep") + '/' + Whole(trial, "number")) +
      "  " + style.Paint(ColourOfState(state), state));
  sections.Field("reason", FirstLine(TextAt(trial, "reason")));
  sections.Field("waiting", TextAt(trial, "waiting"));
  sections.Field("proposed", Proposal(trial));
  sections.Field("step", Whole(trial, "step"));
  sections.Field("trained", FormatDuration(NumberOf(At(trial, "seconds")).value_or(0)));
  sections.Field("best", Number(At(trial, "best")));
  AddMetrics(trial, sections);

  sections.Title("configuration");
  for (const auto& [name, value] : At(trial, "config").items()) {
    sections.Field(name, FormatSetting(value));
  }
  AddAttempts(At(trial, "attempts_list"), At(trial, "decisions"), sections);
  AddDecisions(At(trial, "decisions"), sections);
  AddCheckpoints(At(trial, "checkpoints"), sections);
  AddHistory(At(trial, "history"), sections);
  return sections.Take();
}

std::vector<std::string> ExplanationSections(const Json& explanation, int64_t number,
                                             const Json& trial, const Style& style, int width) {
  const Json& decision = At(explanation, "decision");
  Sections sections(style, width);
  sections.Field("proposed", Proposal(explanation));
  sections.Field("decided",
                 decision.is_null() ? "nothing yet" : FirstLine(TextAt(decision, "reason")));
  sections.Field("by", PolicyOf(explanation));
  sections.Field("now", Since(decision, trial));
  AddRung(explanation, number, sections);
  AddPromotions(At(trial, "decisions"), sections);
  return sections.Take();
}

std::vector<std::string> ScheduleTable(const Json& schedule, const Style& style, int width) {
  Table table({{"FROM STEP", true}, {"TRIAL", true}, {"CONFIG"}});
  for (const Json& part : At(schedule, "schedule")) {
    table.Add({std::to_string(WholeAt(part, "step")), std::to_string(WholeAt(part, "trial")),
               Clean(FormatConfigBriefly(At(part, "config")))});
  }
  return table.Lines(style, width);
}

std::vector<std::string> TrainingLines(const Json& trial, const Style& style) {
  const std::string state = TextAt(trial, "state");
  const std::string reason = TextAt(trial, "reason");
  std::string title = "training " + TextAt(trial, "sweep") + '/' + Whole(trial, "number") + ' ' +
                      style.Paint(ColourOfState(state), state) + " in " +
                      FormatDuration(WallSeconds(trial));
  Sections lines(style, /*width=*/0, WidestKey(At(trial, "metrics"), kNameColumnsMin));
  lines.Line(reason.empty() ? title : title + ": " + Clean(FirstLine(reason)));
  // A failure has the last lines of the rank that caused it. The reader may have seen another
  // rank's log.
  if (state == "failed") {
    for (std::string& line : FailureLog(trial)) lines.Line(std::move(line));
  }
  if (WholeAt(trial, "step") > 0) lines.Field("step", Whole(trial, "step"));
  AddMetrics(trial, lines);
  return lines.Take();
}

}  // namespace attune::cli
