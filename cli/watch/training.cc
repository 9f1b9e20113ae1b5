#include "cli/watch/training.h"

#include "base/result.h"
#include "cli/text/width.h"
#include "cli/watch/event_line.h"
#include "cli/watch/log_follower.h"

namespace attune::cli {
namespace {

class Training final : public Progress {
 public:
  Training(Api& api, TrialName trial, Output& log, Output& notes)
      : log_(api, trial, /*rank=*/0, std::nullopt, log), number_(trial.number), notes_(notes) {}

  // Skips the configuration, which the user has typed, and the end, which the command prints.
  void OnEvent(const ServerEvent& event, const SweepModel& sweep) override {
    if (event.kind == "trial_created" || event.kind == "sweep_changed") return;
    const std::string line = EventLine(event, sweep);
    if (!line.empty()) notes_.Print(line);
  }

  void Tick(const SweepModel& sweep, Clock::time_point) override {
    if (const std::string reason = sweep.idle_reason(); reason != idle_reason_) {
      idle_reason_ = reason;
      if (!reason.empty()) notes_.Print("waiting: " + Clean(reason));
    }
    CopyLog(sweep);
  }

  void Note(std::string_view line) override { notes_.Print(line); }
  void Finish(const SweepModel& sweep) override { CopyLog(sweep); }

 private:
  // If the log is not available, for example before the gang starts, the next call continues.
  void CopyLog(const SweepModel& sweep) {
    const auto trial = sweep.trials().find(number_);
    if (trial == sweep.trials().end() || trial->second.attempts == 0) return;
    const Status copied = log_.Copy(trial->second.attempts);
    const std::string fault =
        copied.ok() || copied.error().code == ErrorCode::kNotFound ? "" : copied.error().message;
    if (fault != fault_ && !fault.empty()) notes_.Print("rank 0's log: " + Clean(fault));
    fault_ = fault;
  }

  LogFollower log_;
  const int64_t number_;
  Output& notes_;
  std::string idle_reason_;
  std::string fault_;
};

}  // namespace

std::unique_ptr<Progress> MakeTrainingProgress(Api& api, TrialName trial, Output& log,
                                               Output& notes) {
  return std::make_unique<Training>(api, std::move(trial), log, notes);
}

}  // namespace attune::cli
