#include "cli/watch/event_line.h"

#include "cli/text/numbers.h"
#include "cli/text/width.h"
#include "cli/watch/event_data.h"

namespace attune::cli {
namespace {

std::string TrialChanged(const TrialRow& row, const SweepModel& sweep) {
  const std::string subject = "trial " + std::to_string(row.number);
  std::string line = WithReason(subject, row.state, FirstLine(row.reason));
  if (row.state == "completed" && row.best.has_value()) {
    line += "; " + sweep.objective().metric + ' ' + FormatNumber(*row.best) + " at best";
  }
  return line;
}

std::string AttemptChanged(const EventData& data) {
  const std::string failure = FirstLine(data.failure);
  if (failure.empty() && data.outcome != "lost") return "";
  std::string line = "trial " + std::to_string(data.trial.value_or(0)) + " attempt " +
                     std::to_string(data.attempt) + ' ' +
                     (data.outcome.empty() ? "failed" : data.outcome);
  return failure.empty() ? line : line + ": " + failure;
}

std::string ExecutorChanged(const EventData& data) {
  const std::string name = "executor " + data.executor;
  const auto with_reason = [&](const std::string& change) {
    const std::string reason = FirstLine(data.reason);
    return name + change + (reason.empty() ? "" : " (" + reason + ')');
  };
  if (data.drained.has_value()) return with_reason(*data.drained ? " was drained" : " was resumed");
  if (data.quarantined.has_value()) {
    return with_reason(*data.quarantined ? " is quarantined until " + data.until
                                         : " is no longer quarantined");
  }
  if (data.health_problem.has_value()) {
    const std::string problem = FirstLine(*data.health_problem);
    return name + (problem.empty() ? " is healthy again" : " is unhealthy (" + problem + ')');
  }
  if (data.state.empty()) return "";
  const std::string line = name + " is " + data.state;
  if (data.state != "online") return line;
  return line + ": " + std::to_string(data.cpus) + " CPUs, " + std::to_string(data.gpus) +
         " GPUs, " + FormatBytes(static_cast<double>(data.memory_bytes));
}

// Describes an event about a trial. `row`: the trial in `sweep`.
std::string TrialLine(const std::string& kind, const EventData& data, const TrialRow& row,
                      const SweepModel& sweep) {
  if (kind == "trial_changed") return TrialChanged(row, sweep);
  if (kind == "attempt_changed") return AttemptChanged(data);
  if (kind != "trial_created") return "";
  return "trial " + std::to_string(row.number) + " created: " + FormatConfigBriefly(row.config) +
         (data.reason.empty() ? "" : " (" + data.reason + ')');
}

}  // namespace

std::string WithReason(const std::string& subject, const std::string& state,
                       const std::string& reason) {
  if (reason.starts_with(state)) return subject + ' ' + reason;
  return subject + ' ' + state + (reason.empty() ? "" : ": " + reason);
}

std::string EventLine(const ServerEvent& event, const SweepModel& sweep) {
  const EventData data = ReadEvent(event);
  std::string line;
  if (event.kind == "sweep_changed") {
    line = WithReason("sweep " + sweep.id(),
                      sweep.end_state().empty() ? sweep.state() : "is ending", sweep.reason());
  } else if (event.kind == "sweep_edited") {
    line = "sweep " + sweep.id() + " edited by " + data.actor + ": " + JoinWithCommas(data.changes);
  } else if (event.kind == "executor_changed") {
    line = ExecutorChanged(data);
  } else if (data.trial.has_value()) {
    const auto row = sweep.trials().find(*data.trial);
    if (row != sweep.trials().end()) line = TrialLine(event.kind, data, row->second, sweep);
  }
  return Clean(line);
}

std::string SummaryLine(const SweepModel& sweep) {
  std::string line =
      "sweep " + sweep.id() + ' ' + sweep.state() + ": " + std::to_string(sweep.ended_trials());
  if (sweep.max_trials() > 0) line += '/' + std::to_string(sweep.max_trials());
  line += " trials";
  for (const char* state : {"running", "paused", "pending", "completed", "stopped", "failed"}) {
    if (const int64_t count = sweep.Count(state); count > 0) {
      line += ", " + std::to_string(count) + ' ' + state;
    }
  }
  if (const TrialRow* best = sweep.Best(); best != nullptr) {
    line += ", best " + sweep.objective().metric + ' ' + FormatNumber(*best->best) + " (trial " +
            std::to_string(best->number) + ')';
  }
  return Clean(line);
}

}  // namespace attune::cli
