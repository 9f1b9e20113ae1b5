#include "server/http/trial_record.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace attune::server {
namespace {

TrialState StateOf(std::string_view name) {
  using enum TrialState;
  for (TrialState state : {kPending, kRunning, kPaused, kCompleted, kStopped, kFailed}) {
    if (Name(state) == name) return state;
  }
  return kKilled;
}

std::optional<double> ValueAt(const TrialDetail& detail, const CheckpointRow& checkpoint,
                              const Objective& objective) {
  for (const ReportRow& row : detail.history) {
    if (row.report.step != checkpoint.step) continue;
    const auto value = row.report.metrics.find(objective.metric);
    if (value != row.report.metrics.end() && std::isfinite(value->second)) return value->second;
  }
  return std::nullopt;
}

}  // namespace

TrialRecord RecordOf(const TrialDetail& detail, const Objective& objective) {
  TrialRecord record{.id = detail.trial.id,
                     .config = detail.trial.config,
                     .state = StateOf(detail.trial.state),
                     .attempts = detail.trial.attempts,
                     .last_step = detail.trial.step,
                     .seconds = detail.trial.seconds,
                     .seen = detail.seen};
  for (const CheckpointRow& row : detail.checkpoints) {
    if (row.dropped) continue;
    const auto saver = std::ranges::find(detail.attempts, row.attempt, &AttemptRow::number);
    record.checkpoints.push_back({.attempt = row.attempt,
                                  .ref = {row.step, row.path, row.digest},
                                  .executor = saver == detail.attempts.end() ? "" : saver->executor,
                                  .value = ValueAt(detail, row, objective),
                                  .pinned = row.pinned});
  }
  // As they were saved: later attempts go on from earlier ones' checkpoints.
  std::ranges::stable_sort(record.checkpoints, {}, [](const KeptCheckpoint& kept) {
    return std::pair(kept.attempt, kept.ref.step);
  });
  return record;
}

}  // namespace attune::server
