#include "server/http/answers/trial_record.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace attune::server {
namespace {

TrialState StateOf(std::string_view name) {
  using enum TrialState;
  for (TrialState state : {kPending, kRunning, kPaused, kCompleted, kStopped, kFailed}) {
    if (Name(state) == name) return state;
  }
  return kKilled;
}

std::vector<double> ValuesAt(const TrialDetail& detail, const CheckpointRow& checkpoint,
                             const SweepSpec& spec) {
  for (const ReportRow& row : detail.history) {
    if (row.report.step != checkpoint.step) continue;
    auto values = ValuesThatCount(spec.objectives, spec.constraints, row.report.metrics);
    if (!values.empty()) return values;
  }
  return {};
}

}  // namespace

TrialRecord RecordOf(const TrialDetail& detail, const SweepSpec& spec) {
  TrialRecord record{.id = detail.trial.id,
                     .config = detail.trial.config,
                     .patch = detail.trial.patch,
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
                                  .values = ValuesAt(detail, row, spec),
                                  .pinned = row.pinned,
                                  .stored = row.stored});
  }
  // In the order of saving, because later attempts resume from checkpoints of earlier ones.
  std::ranges::stable_sort(record.checkpoints, {}, [](const KeptCheckpoint& kept) {
    return std::pair(kept.attempt, kept.ref.step);
  });
  return record;
}

}  // namespace attune::server
