#include "cli/views/replay_view.h"

#include <algorithm>
#include <cmath>

#include "cli/json.h"
#include "cli/text/numbers.h"
#include "cli/text/table.h"
#include "cli/text/width.h"
#include "cli/watch/model.h"

namespace attune::cli {
namespace {

// The texts of both sweeps, or one text if they are equal.
std::string Between(const std::string& a, const std::string& b) {
  return a == b ? a : a + " … " + b;
}

std::string NameOfScheduler(const Json& scheduler) { return TextMember(scheduler, "name"); }

std::string SchedulerText(const Json& scheduler) {
  std::string text;
  for (const auto& [key, value] : scheduler.items()) {
    if (key == "name") continue;
    text += (text.empty() ? " (" : ", ") + key + ' ' + FormatSetting(value);
  }
  return NameOfScheduler(scheduler) + (text.empty() ? "" : text + ')');
}

std::string OutcomeCounts(const rest::TrialCounts& counts) {
  std::string text;
  for (const auto& [state, count] : CountsByState(counts)) {
    if (count == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(count) + ' ' +
            (state == "pending" ? "not tried" : state);
  }
  return text.empty() ? "none" : text;
}

std::string BestText(const std::optional<rest::BestValue>& best, const std::string& metric) {
  if (!best.has_value()) return "none";
  return metric + ' ' + FormatNumber(best->value) + ", trial " + std::to_string(best->trial);
}

class View {
 public:
  View(const rest::Replay& replay, const Style& style, int width)
      : replay_(replay),
        recorded_(replay.recorded),
        worst_(replay.worst_case),
        best_(replay.best_case),
        style_(style),
        width_(width) {}

  std::vector<std::string> Lines() {
    lines_.push_back(style_.Paint(Colour::kBold, replay_.sweep) + "  under " +
                     Clean(SchedulerText(replay_.scheduler)) + ", on " +
                     FormatCount(replay_.slots, "slot"));
    lines_.emplace_back();
    Comparison();
    lines_.emplace_back();
    lines_.push_back(BestTrial());
    if (const std::string text = Unknown(); !text.empty()) lines_.push_back(text);
    Trials();
    return std::move(lines_);
  }

 private:
  template <class Number, class Format>
  void Row(Table& table, const std::string& name, Number rest::Outcome::*member, Format format) {
    const auto was = static_cast<double>(recorded_.*member);
    const auto least = static_cast<double>(std::min(worst_.*member, best_.*member));
    const auto most = static_cast<double>(std::max(worst_.*member, best_.*member));
    const auto change = [&](double value) {
      const double percent = was > 0 ? std::round(100 * (value - was) / was) : 0;
      return (percent > 0 ? "+" : "") + FormatNumber(percent) + " %";
    };
    table.Add({Cell(name, Colour::kDim), format(was), Between(format(least), format(most)),
               Between(change(least), change(most))});
  }

  void Comparison() {
    Table table({{""}, {"RECORDED"}, {"REPLAYED"}, {"CHANGE"}});
    table.Add({Cell("scheduler", Colour::kDim), NameOfScheduler(replay_.recorded_scheduler),
               NameOfScheduler(replay_.scheduler), ""});
    if (recorded_.gpu_hours > 0) Row(table, "GPU-hours", &rest::Outcome::gpu_hours, FormatNumber);
    Row(table, "CPU-hours", &rest::Outcome::cpu_hours, FormatNumber);
    Row(table, "time", &rest::Outcome::wall_seconds, FormatDuration);
    Row(table, "steps", &rest::Outcome::steps,
        [](double steps) { return std::to_string(static_cast<int64_t>(steps)); });
    table.Add({Cell("trials", Colour::kDim), OutcomeCounts(recorded_.trials),
               Between(OutcomeCounts(worst_.trials), OutcomeCounts(best_.trials)), ""});
    const std::string& metric = replay_.metric;
    table.Add({Cell("best", Colour::kDim), BestText(recorded_.best, metric),
               Between(BestText(worst_.best, metric), BestText(best_.best, metric)), ""});
    for (std::string& line : table.Lines(style_, 0)) lines_.push_back(std::move(line));
  }

  // What becomes of the trial that was recorded as the best.
  std::string BestTrial() const {
    if (!recorded_.best.has_value()) return "no recorded report counts";
    const rest::BestValue& best = *recorded_.best;
    const std::string name = "trial " + std::to_string(best.trial) + ", the recorded best, ";
    const bool in_worst_case = worst_.keeps_best_trial;
    const bool in_best_case = best_.keeps_best_trial;
    if (in_worst_case && in_best_case)
      return style_.Paint(Colour::kGreen,
                          name + "reaches step " + std::to_string(best.step) + " again");
    std::string regret = "; the replayed sweep may have no best report";
    if (worst_.regret.has_value() && best_.regret.has_value()) {
      const auto [least, most] = std::minmax(*worst_.regret, *best_.regret);
      regret = "; the best report of the replayed sweep is worse by " +
               Between(FormatNumber(least), FormatNumber(most));
    }
    if (in_worst_case != in_best_case)
      return style_.Paint(Colour::kYellow,
                          name + "may be lost: that depends on unrecorded reports" + regret);
    const auto trial = std::ranges::find(replay_.trials, best.trial, &rest::ReplayedTrial::number);
    if (trial == replay_.trials.end()) return style_.Paint(Colour::kRed, name + "is lost" + regret);
    const rest::TrialEnd& end = trial->worst_case;
    return style_.Paint(Colour::kRed, Clean(name + "is lost at step " + std::to_string(end.step) +
                                            regret + ": " + end.reason));
  }

  std::string Unknown() const {
    if (replay_.unknown == 0) return "";
    return style_.Paint(Colour::kYellow,
                        std::to_string(replay_.unknown) + " of " +
                            FormatCount(std::ssize(replay_.trials), "trial") +
                            " continue beyond their recorded reports (marked ?): a … b are the "
                            "results if they become the worst and if they become the best");
  }

  static std::string EndText(const rest::RecordedEnd& end) {
    return end.state == "pending" ? "not tried" : end.state + ' ' + std::to_string(end.step);
  }

  void Trials() {
    Table table({{"TRIAL", true}, {"RECORDED"}, {"REPLAYED"}, {"WHY"}});
    int64_t same = 0;
    for (const rest::ReplayedTrial& trial : replay_.trials) {
      const std::string was = EndText(trial.recorded);
      const std::string is = Between(EndText(trial.worst_case), EndText(trial.best_case));
      if (is == was && !trial.unknown) {
        ++same;
        continue;
      }
      // An unknown trial is judged by assumed values, so their reason is not shown.
      const std::string why = trial.unknown
                                  ? "recorded up to step " + std::to_string(trial.recorded.step)
                                  : trial.worst_case.reason;
      table.Add({std::to_string(trial.number), was,
                 Cell(is + (trial.unknown ? " ?" : ""), ColourOfState(trial.worst_case.state)),
                 Clean(why)});
    }
    if (!table.empty()) {
      lines_.emplace_back();
      for (std::string& line : table.Lines(style_, width_)) lines_.push_back(std::move(line));
    }
    if (same > 0) {
      lines_.emplace_back();
      lines_.push_back(std::to_string(same) + (same == 1 ? " trial ends" : " trials end") +
                       " at the recorded step");
    }
  }

  const rest::Replay& replay_;
  const rest::Outcome& recorded_;
  const rest::ReplayedOutcome& worst_;
  const rest::ReplayedOutcome& best_;
  const Style& style_;
  const int width_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> ReplaySections(const rest::Replay& replay, const Style& style, int width) {
  return View(replay, style, width).Lines();
}

}  // namespace attune::cli
