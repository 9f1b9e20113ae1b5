#include "cli/watch/outcome.h"

#include <algorithm>

#include "cli/text/numbers.h"
#include "cli/text/table.h"
#include "cli/text/width.h"

namespace attune::cli {
namespace {

constexpr size_t kStoppedShownMax = 8;

void AddBest(const rest::Sweep& sweep, const Style& style, std::vector<std::string>& lines) {
  const std::string& metric = sweep.metric.name;
  if (!sweep.best.has_value()) {
    const bool failed = sweep.state == "failed" && sweep.reason.starts_with("no finite report");
    lines.push_back(failed ? "no best trial" : "no trial has reported " + metric);
    return;
  }
  const rest::Best& best = *sweep.best;
  lines.push_back("best  trial " + std::to_string(best.trial) + ": " + metric + ' ' +
                  style.Paint(Colour::kGreen, FormatNumber(best.value)) + " at step " +
                  std::to_string(best.step));
  const int columns = WidestKey(best.config, kNameColumnsMin + 2);
  for (const auto& [name, setting] : best.config.items()) {
    lines.push_back("  " + Pad(Clean(name), columns) + "  " + Clean(FormatSetting(setting)));
  }
  std::string metrics;
  for (const auto& [name, value] : best.metrics)
    metrics += (metrics.empty() ? "" : ", ") + name + ' ' + FormatNumber(value);
  if (!metrics.empty()) lines.push_back("  " + Pad("metrics", columns) + "  " + Clean(metrics));
  const std::string checkpoint = CheckpointOf(best);
  lines.push_back("  " + Pad("checkpoint", columns) + "  " +
                  (checkpoint.empty() ? "none was saved" : checkpoint));
}

// The reason without the step and the state, which have their own columns.
std::string ShortReason(const rest::Trial& trial) {
  std::string reason = trial.reason;
  if (reason.starts_with("stopped at step ")) {
    if (const size_t colon = reason.find(": "); colon != std::string::npos) {
      reason.erase(0, colon + 2);
    }
  }
  return reason.substr(0, reason.find('\n'));
}

void AddTable(const std::string& title, const std::vector<rest::Trial>& trials,
              const std::string& metric, const Style& style, int width,
              std::vector<std::string>& lines) {
  if (trials.empty()) return;
  lines.push_back("");
  lines.push_back(title);
  Table table({{"TRIAL", true}, {"STEP", true}, {metric, true}, {"WHY"}});
  for (size_t i = 0; i < std::min(trials.size(), kStoppedShownMax); ++i) {
    const rest::Trial& trial = trials[i];
    table.Add({std::to_string(trial.number), std::to_string(trial.step), FormatOptional(trial.best),
               ShortReason(trial)});
  }
  for (std::string& line : table.Lines(style, width)) lines.push_back(std::move(line));
  if (trials.size() > kStoppedShownMax) {
    lines.push_back("and " + std::to_string(trials.size() - kStoppedShownMax) +
                    " more: attune trial list " + trials.front().sweep);
  }
}

std::vector<rest::Trial> TrialsInState(std::vector<rest::Trial> trials, std::string_view state) {
  std::erase_if(trials, [&](const rest::Trial& trial) { return trial.state != state; });
  return trials;
}

}  // namespace

std::string CheckpointOf(const rest::Best& best) {
  std::string text = Clean(best.checkpoint.value_or(""));
  if (best.checkpoint_step.has_value() && best.checkpoint_step != best.step)
    text += " (of step " + std::to_string(*best.checkpoint_step) + ')';
  return text;
}

Json OutcomeJson(const rest::Sweep& sweep, double wall_seconds) {
  Json best;
  if (sweep.best.has_value()) {
    best = {{"trial", sweep.best->trial},
            {"config", sweep.best->config},
            {"metrics", rest::ToJson(sweep.best->metrics)},
            {"checkpoint", rest::ToJson(sweep.best->checkpoint)}};
  }
  return {{"sweep", sweep.id},
          {"state", sweep.state},
          {"best", best},
          {"trials", rest::ToJson(sweep.trials)},
          {"wall_seconds", wall_seconds}};
}

std::vector<std::string> OutcomeLines(const rest::Sweep& sweep,
                                      const std::vector<rest::Trial>& trials, double wall_seconds,
                                      const Style& style, int width) {
  std::vector<std::string> lines;
  std::string title = "sweep " + sweep.id + ' ' + Clean(sweep.name) + ' ' +
                      style.Paint(ColourOfState(sweep.state), sweep.state) + " in " +
                      FormatDuration(wall_seconds);
  if (!sweep.reason.empty()) title += ": " + Clean(sweep.reason);
  lines.push_back(title);
  lines.push_back("");
  AddBest(sweep, style, lines);

  const auto stopped = TrialsInState(trials, "stopped");
  const auto failed = TrialsInState(trials, "failed");
  const std::string total = " of " + std::to_string(trials.size()) + " trials";
  const std::string& metric = sweep.metric.name;
  AddTable(std::to_string(stopped.size()) + total + " were stopped early", stopped, metric, style,
           width, lines);
  AddTable(std::to_string(failed.size()) + total + " failed", failed, metric, style, width, lines);
  return lines;
}

ExitCode ExitCodeOfSweep(const rest::Sweep& sweep) {
  return sweep.state == "failed" || sweep.state == "killed" ? ExitCode::kSweepFailed
                                                            : ExitCode::kSuccess;
}

}  // namespace attune::cli
