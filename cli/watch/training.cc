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

  // The configuration is known to whoever has typed it, and the end is told by the verb.
  void OnEvent(const ServerEvent& event, const SweepModel& sweep) override {
    if (event.kind == "trial_created" || event.kind == "sweep_changed") return;
    const std::string line = EventLine(event, sweep);
    if (!line.empty()) notes_.Print(line);
  }

  void Tick(const SweepModel& sweep, Clock::time_point) override {
    if (const std::string stuck = sweep.stuck(); stuck != stuck_) {
      stuck_ = stuck;
      if (!stuck.empty()) notes_.Print("waiting: " + Clean(stuck));
    }
    CopyLog(sweep);
  }

  void Note(std::string_view line) override { notes_.Print(line); }
  void Finish(const SweepModel& sweep) override { CopyLog(sweep); }

 private:
  // A log that cannot be had now, since its gang or its executor is not there yet or just away, is
  // read on later.
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
  std::string stuck_;
  std::string fault_;
};

}  // namespace

std::unique_ptr<Progress> ShowTraining(Api& api, TrialName trial, Output& log, Output& notes) {
  return std::make_unique<Training>(api, std::move(trial), log, notes);
}

}  // namespace attune::cli
