#include "cli/views/replay_view.h"

#include <algorithm>
#include <cmath>

#include "cli/text/numbers.h"
#include "cli/text/table.h"
#include "cli/text/width.h"

namespace attune::cli {
namespace {

double RealAt(const Json& object, std::string_view key) {
  return NumberOf(At(object, key)).value_or(0);
}

// The texts of both sweeps, or one text if they are equal.
std::string Between(const std::string& a, const std::string& b) {
  return a == b ? a : a + " … " + b;
}

std::string SchedulerText(const Json& scheduler) {
  std::string text;
  for (const auto& [key, value] : scheduler.items()) {
    if (key == "name") continue;
    text += (text.empty() ? " (" : ", ") + key + ' ' + FormatSetting(value);
  }
  return TextAt(scheduler, "name") + (text.empty() ? "" : text + ')');
}

std::string OutcomeCounts(const Json& counts) {
  std::string text;
  for (const auto& [state, count] : counts.items()) {
    if (!count.is_number() || count.get<int64_t>() == 0) continue;
    const std::string word = state == "pending" ? "not tried" : state;
    text += (text.empty() ? "" : ", ") + std::to_string(count.get<int64_t>()) + ' ' + word;
  }
  return text.empty() ? "none" : text;
}

std::string BestText(const Json& best, const std::string& metric) {
  if (!best.is_object()) return "none";
  return metric + ' ' + FormatNumber(RealAt(best, "value")) + ", trial " +
         std::to_string(WholeAt(best, "trial"));
}

class View {
 public:
  View(const Json& replay, const Style& style, int width)
      : replay_(replay),
        recorded_(At(replay, "recorded")),
        worst_(At(replay, "if_worst")),
        best_(At(replay, "if_best")),
        metric_(TextAt(replay, "metric")),
        style_(style),
        width_(width) {}

  std::vector<std::string> Lines() {
    const int64_t slots = WholeAt(replay_, "slots");
    lines_.push_back(style_.Paint(Colour::kBold, TextAt(replay_, "sweep")) + "  under " +
                     Clean(SchedulerText(At(replay_, "scheduler"))) + ", on " +
                     std::to_string(slots) + (slots == 1 ? " slot" : " slots"));
    lines_.emplace_back();
    Comparison();
    lines_.emplace_back();
    lines_.push_back(Winner());
    if (const std::string text = Unknown(); !text.empty()) lines_.push_back(text);
    Trials();
    return std::move(lines_);
  }

 private:
  template <class Format>
  void Row(Table& table, const std::string& name, std::string_view key, Format format) {
    const double was = RealAt(recorded_, key);
    const double least = std::min(RealAt(worst_, key), RealAt(best_, key));
    const double most = std::max(RealAt(worst_, key), RealAt(best_, key));
    const auto change = [&](double value) {
      const double percent = was > 0 ? std::round(100 * (value - was) / was) : 0;
      return (percent > 0 ? "+" : "") + FormatNumber(percent) + " %";
    };
    table.Add({Cell(name, Colour::kDim), format(was), Between(format(least), format(most)),
               Between(change(least), change(most))});
  }

  void Comparison() {
    Table table({{""}, {"RECORDED"}, {"REPLAYED"}, {"CHANGE"}});
    table.Add({Cell("scheduler", Colour::kDim), TextAt(At(replay_, "recorded_scheduler"), "name"),
               TextAt(At(replay_, "scheduler"), "name"), ""});
    if (RealAt(recorded_, "gpu_hours") > 0) Row(table, "GPU-hours", "gpu_hours", FormatNumber);
    Row(table, "CPU-hours", "cpu_hours", FormatNumber);
    Row(table, "time", "wall_seconds", FormatDuration);
    Row(table, "steps", "steps",
        [](double steps) { return std::to_string(static_cast<int64_t>(steps)); });
    table.Add({Cell("trials", Colour::kDim), OutcomeCounts(At(recorded_, "trials")),
               Between(OutcomeCounts(At(worst_, "trials")), OutcomeCounts(At(best_, "trials"))),
               ""});
    table.Add({Cell("best", Colour::kDim), BestText(At(recorded_, "best"), metric_),
               Between(BestText(At(worst_, "best"), metric_), BestText(At(best_, "best"), metric_)),
               ""});
    for (std::string& line : table.Lines(style_, 0)) lines_.push_back(std::move(line));
  }

  const Json& TrialAt(int64_t number) const {
    static const Json none;
    const Json& trials = At(replay_, "trials");
    return trials.is_array() && number < std::ssize(trials) ? trials[static_cast<size_t>(number)]
                                                            : none;
  }

  std::string Winner() const {
    const Json& best = At(recorded_, "best");
    const int64_t winner = WholeAt(best, "trial");
    const std::string name = "trial " + std::to_string(winner) + ", the winner, ";
    const bool if_worst = At(worst_, "keeps_winner") == true;
    const bool if_best = At(best_, "keeps_winner") == true;
    if (if_worst && if_best)
      return style_.Paint(Colour::kGreen, name + "survives: it comes to step " +
                                              std::to_string(WholeAt(best, "step")) + " again");
    std::string regret = "; then no result may be left that counts";
    if (At(worst_, "regret").is_number() && At(best_, "regret").is_number()) {
      const double a = RealAt(worst_, "regret");
      const double b = RealAt(best_, "regret");
      regret = "; what is then the best is worse by " +
               Between(FormatNumber(std::min(a, b)), FormatNumber(std::max(a, b)));
    }
    if (if_worst != if_best)
      return style_.Paint(Colour::kYellow,
                          name + "may survive: that hangs on what was not recorded" + regret);
    const Json& end = At(TrialAt(winner), "if_worst");
    return style_.Paint(Colour::kRed,
                        Clean(name + "is lost at step " + std::to_string(WholeAt(end, "step")) +
                              regret + ": " + TextAt(end, "reason")));
  }

  std::string Unknown() const {
    const int64_t unknown = WholeAt(replay_, "unknown");
    if (unknown == 0) return "";
    return style_.Paint(
        Colour::kYellow,
        std::to_string(unknown) + " of " + std::to_string(At(replay_, "trials").size()) +
            " trials go on beyond what was recorded of them (marked ?): a … b is what "
            "follows if they are the worst from there on, and if they are the best");
  }

  static std::string EndText(const Json& end) {
    const std::string state = TextAt(end, "state");
    if (state == "pending") return "not tried";
    return state + ' ' + std::to_string(WholeAt(end, "step"));
  }

  void Trials() {
    Table table({{"TRIAL", true}, {"RECORDED"}, {"REPLAYED"}, {"WHY"}});
    int64_t same = 0;
    for (const Json& trial : At(replay_, "trials")) {
      const std::string was = EndText(At(trial, "recorded"));
      const Json& worst = At(trial, "if_worst");
      const std::string is = Between(EndText(worst), EndText(At(trial, "if_best")));
      const bool unknown = At(trial, "unknown") == true;
      if (is == was && !unknown) {
        ++same;
        continue;
      }
      // An unknown trial is judged by assumed values, so their reason is not shown.
      const std::string why =
          unknown ? "recorded up to step " + std::to_string(WholeAt(At(trial, "recorded"), "step"))
                  : TextAt(worst, "reason");
      table.Add({std::to_string(WholeAt(trial, "number")), was,
                 Cell(is + (unknown ? " ?" : ""), ColourOfState(TextAt(worst, "state"))),
                 Clean(why)});
    }
    if (!table.empty()) {
      lines_.emplace_back();
      for (std::string& line : table.Lines(style_, width_)) lines_.push_back(std::move(line));
    }
    if (same > 0) {
      lines_.emplace_back();
      lines_.push_back(std::to_string(same) +
                       (same == 1 ? " trial ends where it did" : " trials end where they did"));
    }
  }

  const Json& replay_;
  const Json& recorded_;
  const Json& worst_;
  const Json& best_;
  const std::string metric_;
  const Style& style_;
  const int width_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> ReplaySections(const Json& replay, const Style& style, int width) {
  return View(replay, style, width).Lines();
}

}  // namespace attune::cli
