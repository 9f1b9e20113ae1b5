#include "cli/watch/outcome.h"

#include <algorithm>

#include "cli/text/numbers.h"
#include "cli/text/table.h"
#include "cli/text/width.h"

namespace attune::cli {
namespace {

constexpr size_t kStoppedShownMax = 8;

void AddBest(const Json& sweep, const Style& style, std::vector<std::string>& lines) {
  const std::string metric = TextAt(At(sweep, "metric"), "name");
  const Json& best = At(sweep, "best");
  if (!best.is_object()) {
    lines.push_back("no trial has reported " + metric);
    return;
  }
  const std::string value = FormatNumber(NumberOf(At(best, "value")).value_or(0));
  lines.push_back("best  trial " + std::to_string(WholeAt(best, "trial")) + ": " + metric + ' ' +
                  style.Paint(Colour::kGreen, value) + " at step " +
                  std::to_string(WholeAt(best, "step")));
  const int columns = WidestKey(At(best, "config"), kNameColumnsMin + 2);
  for (const auto& [name, setting] : At(best, "config").items()) {
    lines.push_back("  " + Pad(Clean(name), columns) + "  " + Clean(FormatSetting(setting)));
  }
  std::string metrics;
  for (const auto& [name, number] : At(best, "metrics").items()) {
    metrics +=
        (metrics.empty() ? "" : ", ") + name + ' ' + FormatNumber(NumberOf(number).value_or(0));
  }
  if (!metrics.empty()) lines.push_back("  " + Pad("metrics", columns) + "  " + Clean(metrics));
  const std::string checkpoint = CheckpointOf(best);
  lines.push_back("  " + Pad("checkpoint", columns) + "  " +
                  (checkpoint.empty() ? "none was saved" : checkpoint));
}

// The step and the state stand in columns of their own.
std::string Why(const Json& trial) {
  std::string reason = TextAt(trial, "reason");
  if (reason.starts_with("stopped at step ")) {
    if (const size_t colon = reason.find(": "); colon != std::string::npos) {
      reason.erase(0, colon + 2);
    }
  }
  return reason.substr(0, reason.find('\n'));
}

void AddTable(const std::string& title, const std::vector<const Json*>& trials,
              const std::string& metric, const Style& style, int width,
              std::vector<std::string>& lines) {
  if (trials.empty()) return;
  lines.push_back("");
  lines.push_back(title);
  Table table({{"TRIAL", true}, {"STEP", true}, {metric, true}, {"WHY"}});
  for (size_t i = 0; i < std::min(trials.size(), kStoppedShownMax); ++i) {
    const Json& trial = *trials[i];
    const std::optional<double> value = NumberOf(At(trial, "best"));
    table.Add({std::to_string(WholeAt(trial, "number")), std::to_string(WholeAt(trial, "step")),
               value.has_value() ? FormatNumber(*value) : "", Why(trial)});
  }
  for (std::string& line : table.Lines(style, width)) lines.push_back(std::move(line));
  if (trials.size() > kStoppedShownMax) {
    lines.push_back("and " + std::to_string(trials.size() - kStoppedShownMax) +
                    " more: attune trial list " + TextAt(*trials.front(), "sweep"));
  }
}

std::vector<const Json*> InState(const Json& trials, std::string_view state) {
  std::vector<const Json*> found;
  for (const Json& trial : trials) {
    if (TextAt(trial, "state") == state) found.push_back(&trial);
  }
  return found;
}

}  // namespace

std::string CheckpointOf(const Json& best) {
  std::string text = Clean(TextAt(best, "checkpoint"));
  const Json& step = At(best, "checkpoint_step");
  if (step.is_number() && step != At(best, "step"))
    text += " (of step " + std::to_string(WholeAt(best, "checkpoint_step")) + ')';
  return text;
}

Json OutcomeJson(const Json& sweep, double wall_seconds) {
  Json best;
  if (At(sweep, "best").is_object()) {
    for (const char* key : {"trial", "config", "metrics", "checkpoint"}) {
      best[key] = At(At(sweep, "best"), key);
    }
  }
  return {{"sweep", At(sweep, "id")},
          {"state", At(sweep, "state")},
          {"best", best},
          {"trials", At(sweep, "trials")},
          {"wall_seconds", wall_seconds}};
}

std::vector<std::string> OutcomeLines(const Json& sweep, const Json& trials, double wall_seconds,
                                      const Style& style, int width) {
  std::vector<std::string> lines;
  const std::string state = TextAt(sweep, "state");
  std::string title = "sweep " + TextAt(sweep, "id") + ' ' + Clean(TextAt(sweep, "name")) + ' ' +
                      style.Paint(ColourOfState(state), state) + " in " +
                      FormatDuration(wall_seconds);
  if (const std::string reason = TextAt(sweep, "reason"); !reason.empty()) {
    title += ": " + Clean(reason);
  }
  lines.push_back(title);
  lines.push_back("");
  AddBest(sweep, style, lines);

  const std::vector<const Json*> stopped = InState(trials, "stopped");
  const std::vector<const Json*> failed = InState(trials, "failed");
  const std::string of = " of " + std::to_string(trials.size()) + " trials";
  std::string metric = TextAt(At(sweep, "metric"), "name");
  AddTable(std::to_string(stopped.size()) + of + " were stopped early", stopped, metric, style,
           width, lines);
  AddTable(std::to_string(failed.size()) + of + " failed", failed, metric, style, width, lines);
  return lines;
}

ExitCode ExitCodeOfSweep(const Json& sweep) {
  const std::string state = TextAt(sweep, "state");
  return state == "failed" || state == "killed" ? ExitCode::kSweepFailed : ExitCode::kSuccess;
}

}  // namespace attune::cli
