#include "cli/watch/live_view.h"

#include <algorithm>

#include "cli/text/numbers.h"
#include "cli/text/table.h"
#include "cli/text/width.h"

namespace attune::cli {
namespace {

constexpr int kTrialRowsMax = 12;
constexpr int kRungBarColumns = 8;
constexpr int kProgressColumns = 10;
constexpr int kEndedForEstimateMin = 3;

std::string ToUpper(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

std::string HeaderLine(const SweepModel& sweep, const Style& style, double now) {
  std::string line = style.Paint(Colour::kBold, Clean(sweep.name()));
  line += "  " + sweep.id() + "  " + style.Paint(ColourOfState(sweep.state()), sweep.state());
  line += "  " + std::to_string(sweep.ended_trials());
  if (sweep.max_trials() > 0) line += '/' + std::to_string(sweep.max_trials());
  line += " trials";
  for (const char* state : {"running", "paused", "pending", "stopped", "failed"}) {
    if (const int64_t count = sweep.Count(state); count > 0) {
      line += "  " + std::to_string(count) + ' ' + state;
    }
  }
  if (const TrialRow* best = sweep.Best(); best != nullptr) {
    line += "  best " + style.Paint(Colour::kGreen, FormatNumber(*best->best)) + " (trial " +
            std::to_string(best->number) + ')';
  }
  if (sweep.created().has_value() && !sweep.ended()) {
    line += "  " + FormatDuration(now - *sweep.created());
  }
  if (const std::string eta = TimeLeft(sweep, now); !eta.empty()) line += "  ETA " + eta;
  return line;
}

std::string RungsLine(const SweepModel& sweep) {
  int64_t largest = 1;
  for (const int64_t rung : sweep.rungs()) largest = std::max(largest, sweep.CountReached(rung));
  std::string line;
  for (const int64_t rung : sweep.rungs()) {
    const int64_t reached = sweep.CountReached(rung);
    const double fraction = static_cast<double>(reached) / static_cast<double>(largest);
    const std::string bar = Bar(fraction, kRungBarColumns, "");
    line += (line.empty() ? "rung " : " │ rung ") + std::to_string(rung) + ' ' + bar +
            (bar.empty() ? "" : " ") + std::to_string(reached);
  }
  return line;
}

// The best trial, then the running ones, then the others from the best on.
std::vector<const TrialRow*> TrialsToShow(const SweepModel& sweep, size_t limit) {
  std::vector<const TrialRow*> rows;
  for (const auto& [number, row] : sweep.trials()) rows.push_back(&row);
  const auto group = [](const TrialRow& row) {
    return row.state == "running" ? 0 : row.best.has_value() ? 1 : 2;
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const TrialRow* a, const TrialRow* b) {
    if (group(*a) != group(*b)) return group(*a) < group(*b);
    if (!a->best.has_value() || !b->best.has_value()) return a->best.has_value();
    return sweep.objective().Better(*a->best, *b->best);
  });
  // Shows the best trial even if more trials run than fit.
  if (const TrialRow* best = sweep.Best(); best != nullptr && limit > 0) {
    const auto found = std::find(rows.begin(), rows.end(), best);
    std::rotate(rows.begin(), found, found + 1);
  }
  if (rows.size() > limit) rows.resize(limit);
  return rows;
}

std::string StepText(const TrialRow& row, int64_t max_step) {
  std::string text = std::to_string(row.step);
  if (max_step > 0) text += '/' + std::to_string(max_step);
  return text;
}

std::string DifferenceToBest(const TrialRow& row, const TrialRow* best) {
  if (!row.best.has_value() || best == nullptr) return "";
  if (&row == best) return "best";
  const double difference = *row.best - *best->best;
  return (difference >= 0 ? "+" : "") + FormatNumber(difference);
}

// The rightmost cell of a trial.
std::string Note(const TrialRow& row) {
  if (row.attempts > 1) return "attempt " + std::to_string(row.attempts);
  return row.executor;
}

}  // namespace

std::string TimeLeft(const SweepModel& sweep, double now) {
  const int64_t ended = sweep.ended_trials();
  if (sweep.ended() || !sweep.created().has_value() || sweep.max_trials() <= ended ||
      ended < kEndedForEstimateMin) {
    return "";
  }
  const double seconds_per_trial = (now - *sweep.created()) / static_cast<double>(ended);
  return '~' + FormatDuration(seconds_per_trial * static_cast<double>(sweep.max_trials() - ended));
}

std::vector<std::string> LiveView(const SweepModel& sweep, const Style& style, TerminalSize size,
                                  double now) {
  std::vector<std::string> lines = {HeaderLine(sweep, style, now)};
  if (!sweep.rungs().empty()) lines.push_back(RungsLine(sweep));
  if (const std::string reason = sweep.idle_reason(); !reason.empty()) {
    lines.push_back(style.Paint(Colour::kYellow, "waiting: " + Clean(reason)));
  }

  const int free_rows = size.rows - static_cast<int>(lines.size()) - 3;  // titles, rest, cursor
  const auto limit = static_cast<size_t>(std::clamp(free_rows, 0, kTrialRowsMax));
  const std::vector<const TrialRow*> shown = TrialsToShow(sweep, limit);
  const TrialRow* const best = sweep.Best();
  Table table({{"TRIAL", true},
               {"STATE"},
               {"STEP", true},
               {ToUpper(sweep.objective().metric), true},
               {"BEST", true},
               {"Δbest", true},
               {"PROGRESS"},
               {""}});
  for (const TrialRow* row : shown) {
    const double progress = sweep.max_step() > 0 ? static_cast<double>(row->step) /
                                                       static_cast<double>(sweep.max_step())
                                                 : 0;
    table.Add({std::to_string(row->number),
               {row->state, ColourOfState(row->state)},
               StepText(*row, sweep.max_step()),
               row->last.has_value() ? FormatNumber(*row->last) : "",
               {row->best.has_value() ? FormatNumber(*row->best) : "",
                row == best ? Colour::kGreen : Colour::kPlain},
               DifferenceToBest(*row, best),
               sweep.max_step() > 0 ? Bar(progress, kProgressColumns) : "",
               {Note(*row), Colour::kDim}});
  }
  if (!table.empty()) {
    for (std::string& line : table.Lines(style, 0)) lines.push_back(std::move(line));
  }
  if (const size_t hidden = sweep.trials().size() - shown.size(); hidden > 0 && limit > 0) {
    lines.push_back(style.Paint(Colour::kDim, "and " + std::to_string(hidden) + " more"));
  }
  for (std::string& line : lines) line = Clip(line, std::max(1, size.columns - 1));
  return lines;
}

}  // namespace attune::cli
