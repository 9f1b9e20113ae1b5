#include "cli/views/trial_view.h"

#include <set>
#include <utility>

#include "base/lines.h"
#include "cli/json.h"
#include "cli/text/numbers.h"
#include "cli/text/table.h"
#include "cli/text/width.h"
#include "cli/views/failure.h"
#include "cli/watch/model.h"

namespace attune::cli {
namespace {

// Columns for everything except the parameters and the metrics.
int TrialNameColumns(const rest::Trial& trial) {
  return WidestKey(trial.config, WidestKey(rest::ToJson(trial.metrics), kNameColumnsMin));
}

// The time between two moments of an attempt; empty while one of them is missing.
std::string DurationBetween(const std::optional<std::string>& from,
                            const std::optional<std::string>& to) {
  const std::optional<double> start = ParseTime(from.value_or(""));
  const std::optional<double> end = ParseTime(to.value_or(""));
  return start.has_value() && end.has_value() ? FormatDuration(*end - *start) : "";
}

// The time from the start of the first gang to the end of the trial. If one is unknown, the time
// trained, up to the last report.
double WallSeconds(const rest::TrialDetail& trial) {
  std::optional<double> start;
  if (!trial.attempts.empty()) start = ParseTime(trial.attempts.front().started.value_or(""));
  const std::optional<double> end = ParseTime(trial.ended.value_or(""));
  return start.has_value() && end.has_value() ? *end - *start : trial.seconds.value;
}

// What proposed the configuration, and why.
std::string Proposal(const std::string& origin, const std::optional<rest::Rationale>& rationale) {
  if (!rationale.has_value() || rationale->text.empty()) return origin;
  return origin == "initial_points" || origin == "enqueued" ? rationale->text
                                                            : origin + ": " + rationale->text;
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
  // A field that may have several lines. Empty lines are left out.
  void Text(std::string name, const std::string& text) {
    for (const std::string_view line : SplitLines(text))
      Field(std::exchange(name, ""), std::string(line));
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

// The last report, and the newest checkpoint.
void AddMetrics(const rest::Trial& trial, Sections& sections) {
  for (const auto& [name, value] : trial.metrics) sections.Field(name, FormatNumber(value));
  sections.Field("checkpoint", trial.checkpoint.value_or(""));
}

// How an attempt continues the one before it (null: it is the first).
std::string HowItStarted(const rest::Attempt* before,
                         const std::vector<rest::Decision>& decisions) {
  if (before == nullptr || before->outcome.empty()) return "";
  if (before->outcome != "paused") return "again";
  std::string verdict;
  for (const rest::Decision& decision : decisions) {
    if (decision.attempt == before->number) verdict = decision.verdict;
  }
  if (verdict == "exploit") return "clone";
  if (verdict == "resize") return "resized";
  return verdict == "promote" ? "promoted" : "resumed";
}

void AddAttempts(const std::vector<rest::Attempt>& attempts,
                 const std::vector<rest::Decision>& decisions, Sections& sections) {
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
  const rest::Attempt* before = nullptr;
  for (const rest::Attempt& attempt : attempts) {
    const auto& from = attempt.resumed_from;
    table.Add({std::to_string(attempt.number), HowItStarted(before, decisions), attempt.state,
               attempt.outcome, attempt.executor, std::to_string(attempt.ranks.size()),
               from.has_value() ? "step " + std::to_string(*from) : "",
               DurationBetween(attempt.decided, attempt.first_step),
               DurationBetween(attempt.started, attempt.ended)});
    before = &attempt;
  }
  sections.Add(table);
  // A failure is several lines: a sentence and the end of a log.
  for (const rest::Attempt& attempt : attempts) {
    const std::string& failure = attempt.failure;
    if (failure.empty()) continue;
    sections.Line("attempt " + std::to_string(attempt.number) + ": " + Clean(FirstLine(failure)));
    for (size_t at = failure.find('\n'); at != std::string::npos;) {
      const size_t next = failure.find('\n', at + 1);
      sections.Line("  | " + Clean(failure.substr(at + 1, next - at - 1)));
      at = next;
    }
  }
}

void AddDecisions(const std::vector<rest::Decision>& decisions, Sections& sections) {
  if (decisions.empty()) return;
  sections.Title("decisions");
  Table table({{"STEP", true}, {"VERDICT"}, {"RULE"}, {"WHY"}});
  for (const rest::Decision& decision : decisions) {
    table.Add({std::to_string(decision.step), decision.verdict, decision.rule,
               FirstLine(decision.reason)});
  }
  sections.Add(table);
}

// Why the trial resumed, for each pause.
void AddPromotions(const std::vector<rest::Decision>& decisions, Sections& sections) {
  Table table({{"STEP", true}, {"RULE"}, {"RUNG", true}, {"PLACE"}, {"WHY"}});
  for (const rest::Decision& decision : decisions) {
    if (decision.verdict != "promote") continue;
    table.Add({std::to_string(decision.step), decision.rule,
               decision.rung > 0 ? std::to_string(decision.rung) : "",
               decision.peers > 0
                   ? std::to_string(decision.rank) + " of " + std::to_string(decision.peers)
                   : "",
               FirstLine(decision.reason)});
  }
  if (table.empty()) return;
  sections.Title("promotions");
  sections.Add(table);
}

void AddCheckpoints(const std::vector<rest::TrialCheckpoint>& checkpoints, Sections& sections) {
  if (checkpoints.empty()) return;
  sections.Title("checkpoints");
  Table table({{"STEP", true}, {"ATTEMPT", true}, {"SIZE", true}, {"KEPT"}, {"PATH"}});
  for (const rest::TrialCheckpoint& checkpoint : checkpoints) {
    table.Add({std::to_string(checkpoint.step), std::to_string(checkpoint.attempt),
               FormatBytes(static_cast<double>(checkpoint.bytes)),
               checkpoint.dropped.has_value() ? "dropped"
               : checkpoint.pinned            ? "pinned"
                                              : "yes",
               checkpoint.path});
  }
  sections.Add(table);
}

void AddHistory(const std::vector<rest::HistoryPoint>& history, Sections& sections) {
  if (history.empty()) return;
  std::set<std::string> names;
  for (const rest::HistoryPoint& report : history) {
    for (const auto& [name, value] : report.metrics) names.insert(name);
  }
  std::vector<Column> columns = {{"STEP", true}, {"ATTEMPT", true}, {"SECONDS", true}};
  for (const std::string& name : names) columns.push_back({Clean(name), true});
  Table table(columns);
  for (const rest::HistoryPoint& report : history) {
    std::vector<Cell> row = {std::to_string(report.step), std::to_string(report.attempt),
                             FormatNumber(report.seconds)};
    for (const std::string& name : names)
      row.emplace_back(FormatOptional(FindMetric(report.metrics, name)));
    table.Add(std::move(row));
  }
  sections.Title("history");
  sections.Add(table);
}

// The scheduler with its options.
std::string PolicyOf(const rest::Explanation& explanation) {
  if (!explanation.policy.has_value()) return "";
  Json options = Json::object();
  for (const auto& [name, value] : explanation.policy->items()) {
    if (name != "name") options[name] = value;
  }
  return Clean(TextMember(*explanation.policy, "name") + ' ' + FormatConfigBriefly(options) +
               (explanation.policy_changed ? "; edited since" : ""));
}

// The trials that this trial was compared with, best first.
void AddRung(const rest::Explanation& explanation, int64_t number, Sections& sections) {
  if (explanation.rung_trials.empty() || !explanation.decision.has_value()) return;
  sections.Title("rung " + std::to_string(explanation.decision->rung) + " of " +
                 Clean(explanation.decision->rule) + ", at the time of the decision");
  Table table({{""}, {"NO", true}, {"TRIAL", true}, {"VALUE", true}, {"VERDICT"}});
  int64_t place = 0;
  for (const rest::RungTrial& row : explanation.rung_trials) {
    const bool is_this_trial = row.number == number;
    const Colour colour = is_this_trial ? Colour::kBold : Colour::kPlain;
    table.Add({{is_this_trial ? ">" : "", colour},
               {std::to_string(++place), colour},
               {std::to_string(row.number), colour},
               {row.value.has_value() ? FormatNumber(*row.value) : "nan", colour},
               {row.verdict, colour}});
  }
  sections.Add(table);
}

// The state of the trial since the decision; empty if the decision already says it.
std::string StateSince(const std::optional<rest::Decision>& decision, const rest::Trial& trial) {
  const std::string reason = FirstLine(trial.reason);
  const bool is_told =
      reason.empty() || (decision.has_value() && reason == FirstLine(decision->reason));
  const bool runs_again =
      trial.state == "running" && decision.has_value() && decision->verdict != "continue";
  if (is_told && trial.waiting_reason.empty() && !runs_again) return "";
  std::string text = trial.state;
  if (runs_again) text += ", in attempt " + std::to_string(trial.attempt_count);
  if (!is_told) text += ": " + reason;
  if (!trial.waiting_reason.empty()) text += "; " + trial.waiting_reason;
  return text;
}

}  // namespace

std::vector<std::string> TrialTable(const std::vector<rest::Trial>& trials,
                                    const std::string& metric, const Style& style, int width) {
  Table table({{"TRIAL", true},
               {"STATE"},
               {"STEP", true},
               {Clean(metric), true},
               {"BEST", true},
               {"ATTEMPTS", true},
               {"TIME", true},
               {"CONFIG"}});
  for (const rest::Trial& trial : trials) {
    table.Add({std::to_string(trial.number),
               {trial.state, ColourOfState(trial.state)},
               std::to_string(trial.step),
               FormatOptional(FindMetric(trial.metrics, metric)),
               FormatOptional(trial.best),
               std::to_string(trial.attempt_count),
               FormatDuration(trial.seconds),
               FormatConfigBriefly(trial.config)});
  }
  return table.Lines(style, width);
}

std::vector<std::string> TrialSections(const rest::TrialDetail& trial, const Style& style,
                                       int width) {
  Sections sections(style, width, TrialNameColumns(trial));
  sections.Line(
      style.Paint(Colour::kBold, "trial " + trial.sweep + '/' + std::to_string(trial.number)) +
      "  " + style.Paint(ColourOfState(trial.state), trial.state));
  sections.Field("reason", FirstLine(trial.reason));
  sections.Field("waiting", trial.waiting_reason);
  sections.Field("tags", JoinWithCommas(trial.tags));
  sections.Text("note", trial.note);
  sections.Field("proposed", Proposal(trial.origin, trial.rationale));
  if (!trial.patch.empty()) sections.Field("patch", "sha256:" + trial.patch);
  sections.Field("step", std::to_string(trial.step));
  sections.Field("trained", FormatDuration(trial.seconds));
  sections.Field("best", FormatOptional(trial.best));
  AddMetrics(trial, sections);

  sections.Title("configuration");
  for (const auto& [name, value] : trial.config.items()) sections.Field(name, FormatSetting(value));
  AddAttempts(trial.attempts, trial.decisions, sections);
  AddDecisions(trial.decisions, sections);
  AddCheckpoints(trial.checkpoints, sections);
  AddHistory(trial.history, sections);
  return sections.Take();
}

std::vector<std::string> ExplanationSections(const rest::Explanation& explanation, int64_t number,
                                             const rest::TrialDetail* trial, const Style& style,
                                             int width) {
  const std::optional<rest::Decision>& decision = explanation.decision;
  Sections sections(style, width);
  sections.Field("proposed", Proposal(explanation.origin, explanation.rationale));
  sections.Field("decided", decision.has_value() ? FirstLine(decision->reason) : "nothing yet");
  sections.Field("by", PolicyOf(explanation));
  if (trial != nullptr) sections.Field("now", StateSince(decision, *trial));
  AddRung(explanation, number, sections);
  if (trial != nullptr) AddPromotions(trial->decisions, sections);
  return sections.Take();
}

std::vector<std::string> ScheduleTable(const rest::Schedule& schedule, const Style& style,
                                       int width) {
  Table table({{"FROM STEP", true}, {"TRIAL", true}, {"WORKERS", true}, {"CONFIG"}});
  for (const rest::SchedulePart& part : schedule.schedule) {
    table.Add({std::to_string(part.step), std::to_string(part.trial), std::to_string(part.workers),
               Clean(FormatConfigBriefly(part.config))});
  }
  return table.Lines(style, width);
}

std::vector<std::string> TrainingLines(const rest::TrialDetail& trial, const Style& style) {
  std::string title = "training " + trial.sweep + '/' + std::to_string(trial.number) + ' ' +
                      style.Paint(ColourOfState(trial.state), trial.state) + " in " +
                      FormatDuration(WallSeconds(trial));
  Sections lines(style, /*width=*/0, WidestKey(rest::ToJson(trial.metrics), kNameColumnsMin));
  lines.Line(trial.reason.empty() ? title : title + ": " + Clean(FirstLine(trial.reason)));
  // A failure has the last lines of the rank that caused it. The reader may have seen another
  // rank's log.
  if (trial.state == "failed") {
    for (std::string& line : FailureLog(trial)) lines.Line(std::move(line));
  }
  if (trial.step > 0) lines.Field("step", std::to_string(trial.step));
  AddMetrics(trial, lines);
  return lines.Take();
}

}  // namespace attune::cli
