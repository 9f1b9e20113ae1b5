#include "cli/watch/event_line.h"

#include "cli/text/numbers.h"
#include "cli/text/width.h"

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

std::string AttemptChanged(const Json& data) {
  const std::string failure = FirstLine(TextAt(data, "failure"));
  const std::string outcome = TextAt(data, "outcome");
  if (failure.empty() && outcome != "lost") return "";
  std::string line = "trial " + std::to_string(WholeAt(data, "trial")) + " attempt " +
                     std::to_string(WholeAt(data, "attempt")) + ' ' +
                     (outcome.empty() ? "failed" : outcome);
  return failure.empty() ? line : line + ": " + failure;
}

std::string Extent(const SweepModel& sweep) {
  std::string text = sweep.max_trials() > 0 ? std::to_string(sweep.max_trials()) + " trials"
                                            : "as many trials as it takes";
  if (sweep.max_step() > 0) text += " of " + std::to_string(sweep.max_step()) + " steps";
  return text;
}

std::string Joined(const Json& words) {
  std::string text;
  for (const Json& word : words) {
    if (word.is_string()) text += (text.empty() ? "" : ", ") + word.get<std::string>();
  }
  return text;
}

std::string ExecutorChanged(const Json& data) {
  const std::string name = "executor " + TextAt(data, "executor");
  const auto with_reason = [&](const std::string& change) {
    const std::string reason = FirstLine(TextAt(data, "reason"));
    return name + change + (reason.empty() ? "" : " (" + reason + ')');
  };
  if (const Json& drained = At(data, "drained"); drained.is_boolean())
    return with_reason(drained.get<bool>() ? " is drained" : " takes gangs again");
  if (const Json& aside = At(data, "set_aside"); aside.is_boolean()) {
    return with_reason(aside.get<bool>() ? " is set aside until " + TextAt(data, "until")
                                         : " is tried again");
  }
  if (At(data, "problem").is_string()) {
    const std::string problem = FirstLine(TextAt(data, "problem"));
    return name + (problem.empty() ? " is well again" : " is unwell (" + problem + ')');
  }
  const std::string state = TextAt(data, "state");
  if (state.empty()) return "";
  const std::string line = name + " is " + state;
  if (state != "online") return line;
  return line + ": " + std::to_string(WholeAt(data, "cpus")) + " CPUs, " +
         std::to_string(WholeAt(data, "gpus")) + " GPUs, " +
         FormatBytes(static_cast<double>(WholeAt(data, "memory_bytes")));
}

}  // namespace

std::string WithReason(const std::string& subject, const std::string& state,
                       const std::string& reason) {
  if (reason.starts_with(state)) return subject + ' ' + reason;
  return subject + ' ' + state + (reason.empty() ? "" : ": " + reason);
}

std::string EventLine(const ServerEvent& event, const SweepModel& sweep) {
  std::string line;
  if (event.kind == "sweep_changed") {
    line = WithReason("sweep " + sweep.id(), sweep.stopping().empty() ? sweep.state() : "is ending",
                      sweep.reason());
  } else if (event.kind == "sweep_extended") {
    line = "sweep " + sweep.id() + " extended: " + Extent(sweep);
  } else if (event.kind == "sweep_edited") {
    line = "sweep " + sweep.id() + " edited by " + TextAt(event.data, "actor") + ": " +
           Joined(At(event.data, "changes"));
  } else if (event.kind == "executor_changed") {
    line = ExecutorChanged(event.data);
  } else if (event.data.contains("trial")) {
    const auto found = sweep.trials().find(WholeAt(event.data, "trial", -1));
    if (found == sweep.trials().end()) return "";
    const TrialRow& row = found->second;
    if (event.kind == "trial_created") {
      line = "trial " + std::to_string(row.number) + " created: " + FormatConfigBriefly(row.config);
      if (const std::string reason = TextAt(event.data, "reason"); !reason.empty())
        line += " (" + reason + ')';
    } else if (event.kind == "trial_changed") {
      line = TrialChanged(row, sweep);
    } else if (event.kind == "attempt_changed") {
      line = AttemptChanged(event.data);
    }
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
