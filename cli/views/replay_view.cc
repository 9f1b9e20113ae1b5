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
std::string TextOfBoth(const std::string& a, const std::string& b) {
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
    AddComparison();
    lines_.emplace_back();
    lines_.push_back(BestTrialText());
    if (const std::string text = UnknownText(); !text.empty()) lines_.push_back(text);
    AddTrials();
    return std::move(lines_);
  }

 private:
  template <class Number, class Format>
  void AddRow(Table& table, const std::string& name, Number rest::Outcome::*member, Format format) {
    const auto recorded = static_cast<double>(recorded_.*member);
    const auto lowest = static_cast<double>(std::min(worst_.*member, best_.*member));
    const auto highest = static_cast<double>(std::max(worst_.*member, best_.*member));
    const auto change = [&](double value) {
      const double percent = recorded > 0 ? std::round(100 * (value - recorded) / recorded) : 0;
      return (percent > 0 ? "+" : "") + FormatNumber(percent) + " %";
    };
    table.Add({Cell(name, Colour::kDim), format(recorded),
               TextOfBoth(format(lowest), format(highest)),
               TextOfBoth(change(lowest), change(highest))});
  }

  void AddComparison() {
    Table table({{""}, {"RECORDED"}, {"REPLAYED"}, {"CHANGE"}});
    table.Add({Cell("scheduler", Colour::kDim), NameOfScheduler(replay_.recorded_scheduler),
               NameOfScheduler(replay_.scheduler), ""});
    if (recorded_.gpu_hours > 0)
      AddRow(table, "GPU-hours", &rest::Outcome::gpu_hours, FormatNumber);
    AddRow(table, "CPU-hours", &rest::Outcome::cpu_hours, FormatNumber);
    AddRow(table, "time", &rest::Outcome::wall_seconds, FormatDuration);
    AddRow(table, "steps", &rest::Outcome::steps,
           [](double steps) { return std::to_string(static_cast<int64_t>(steps)); });
    table.Add({Cell("trials", Colour::kDim), OutcomeCounts(recorded_.trials),
               TextOfBoth(OutcomeCounts(worst_.trials), OutcomeCounts(best_.trials)), ""});
    const std::string& metric = replay_.metric;
    table.Add({Cell("best", Colour::kDim), BestText(recorded_.best, metric),
               TextOfBoth(BestText(worst_.best, metric), BestText(best_.best, metric)), ""});
    for (std::string& line : table.Lines(style_, 0)) lines_.push_back(std::move(line));
  }

  // What becomes of the trial that was recorded as the best.
  std::string BestTrialText() const {
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
      const auto [lowest, highest] = std::minmax(*worst_.regret, *best_.regret);
      regret = "; the best report of the replayed sweep is worse by " +
               TextOfBoth(FormatNumber(lowest), FormatNumber(highest));
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

  std::string UnknownText() const {
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

  void AddTrials() {
    Table table({{"TRIAL", true}, {"RECORDED"}, {"REPLAYED"}, {"WHY"}});
    int64_t unchanged = 0;
    for (const rest::ReplayedTrial& trial : replay_.trials) {
      const std::string recorded = EndText(trial.recorded);
      const std::string replayed = TextOfBoth(EndText(trial.worst_case), EndText(trial.best_case));
      if (replayed == recorded && !trial.unknown) {
        ++unchanged;
        continue;
      }
      // An unknown trial is judged by assumed values, so their reason is not shown.
      const std::string why = trial.unknown
                                  ? "recorded up to step " + std::to_string(trial.recorded.step)
                                  : trial.worst_case.reason;
      table.Add(
          {std::to_string(trial.number), recorded,
           Cell(replayed + (trial.unknown ? " ?" : ""), ColourOfState(trial.worst_case.state)),
           Clean(why)});
    }
    if (!table.empty()) {
      lines_.emplace_back();
      for (std::string& line : table.Lines(style_, width_)) lines_.push_back(std::move(line));
    }
    if (unchanged > 0) {
      lines_.emplace_back();
      lines_.push_back(std::to_string(unchanged) +
                       (unchanged == 1 ? " trial ends" : " trials end") + " at the recorded step");
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
