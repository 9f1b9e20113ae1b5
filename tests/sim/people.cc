#include "tests/sim/people.h"

#include <memory>
#include <utility>

#include "base/result.h"

namespace attune::sim {
namespace {

constexpr int64_t kMaxThinkUs = 20 * simulate::kSecondUs;
constexpr int64_t kRetryUs = 5 * simulate::kSecondUs;
constexpr char kPatchedDigest[] =
    "sha256:1111111111111111111111111111111111111111111111111111111111111111";

template <class Map>
const auto& Pick(const Map& map, int64_t index) {
  auto chosen = map.begin();
  std::advance(chosen, index);
  return chosen->second;
}

}  // namespace

void People::SubmitUntilAnswered(Command command, std::function<void(bool)> then) {
  SubmitUntilAnswered(std::vector<Command>{std::move(command)}, std::move(then));
}

void People::SubmitUntilAnswered(std::vector<Command> commands, std::function<void(bool)> then) {
  SubmitUntilAnswered(commands, then, std::make_shared<bool>(false));
}

// The request may be sent several times. Only the first answer counts.
void People::SubmitUntilAnswered(const std::vector<Command>& commands,
                                 const std::function<void(bool)>& then,
                                 const std::shared_ptr<bool>& answered) {
  server_.Submit(commands, [this, answered, then,
                            remaining = commands.size()](const ServerHost::Answer& answer) mutable {
    if (!answer.ok() && answer.error().code == ErrorCode::kStorageFull) return;  // retry
    if (*answered) return;
    if (answer.ok()) promises_.OnAnswered(*answer);
    if (--remaining > 0) return;
    *answered = true;
    if (then) then(answer.ok());
  });
  timeline_.ScheduleAfter(kRetryUs, [this, answered, commands, then] {
    if (!*answered) SubmitUntilAnswered(commands, then, answered);
  });
}

void People::DoRandomAction() {
  auto command = DrawAction();
  if (!command) return;
  // The user may act on outdated information.
  const int64_t after_us = Integer(0, 1) == 0 ? 0 : Integer(0, kMaxThinkUs);
  timeline_.ScheduleAfter(after_us,
                          [this, generation = generation_, command = std::move(*command)] {
                            if (generation == generation_) SubmitOnce(command);
                          });
}

void People::SubmitOnce(Command command) {
  server_.Submit(std::move(command), [this](const ServerHost::Answer& answer) {
    if (answer.ok()) promises_.OnAnswered(*answer);
  });
}

void People::DrainOrResumeRandomExecutor() {
  if (books_.executors.empty()) return;
  auto chosen = books_.executors.begin();
  std::advance(chosen, Integer(0, std::ssize(books_.executors) - 1));
  const std::string& name = chosen->first;
  if (Integer(0, 1) == 0) return SubmitOnce(ResumeExecutor{name});
  SubmitOnce(DrainExecutor{name, "", Integer(0, 1) == 0});
}

void People::ResumeEverything() {
  for (const auto& [id, sweep] : books_.sweeps) {
    if (sweep.state == SweepState::kPaused) SubmitUntilAnswered(ResumeSweep{id});
  }
  for (const auto& [name, executor] : books_.executors) {
    if (executor.drained || executor.quarantined || !executor.excluded.empty())
      SubmitUntilAnswered(ResumeExecutor{name});
  }
}

std::optional<Command> People::DrawAction() {
  if (books_.sweeps.empty()) return std::nullopt;
  const SweepBook& sweep = Pick(books_.sweeps, Integer(0, std::ssize(books_.sweeps) - 1));
  if (annotate_ && Integer(0, 2) == 0) return DrawAnnotation(sweep);
  if (sweep.trials.empty() || Integer(0, 1) == 0) return DrawActionOn(sweep);
  return DrawActionOn(Pick(sweep.trials, Integer(0, std::ssize(sweep.trials) - 1)));
}

// Draws a note or tags of the sweep or of one of its trials.
Command People::DrawAnnotation(const SweepBook& sweep) {
  Annotation annotation;
  if (Integer(0, 1) == 0) annotation.note = "note " + std::to_string(Integer(0, 9));
  if (Integer(0, 1) == 0) annotation.tags = {"tag-" + std::to_string(Integer(0, 9))};
  if (sweep.trials.empty() || Integer(0, 1) == 0) return AnnotateSweep{sweep.id, annotation};
  const TrialBook& trial = Pick(sweep.trials, Integer(0, std::ssize(sweep.trials) - 1));
  return AnnotateTrial{trial.id, annotation};
}

// Draws an edit of the sweep's newest state.
EditSweep People::DrawEdit(const SweepBook& sweep) {
  EditSweep edit{.sweep = sweep.id, .spec = sweep.spec, .seen = books_.last_seq};
  SweepSpec& spec = *edit.spec;
  if (Integer(0, 1) == 0) spec.space = DrawRanges(spec.space);
  if (Integer(0, 2) == 0) spec.priority = static_cast<int>(Integer(-1, 1));
  if (Integer(0, 2) == 0) spec.max_concurrent_trials = static_cast<int>(Integer(0, 3));
  if (Integer(0, 2) == 0)
    spec.stop.max_trials = sweep.CreatedCount() + static_cast<int>(Integer(1, 3));
  if (Integer(0, 3) == 0) spec.failure.max_restarts += static_cast<int>(Integer(1, 2));
  if (Integer(0, 3) == 0) spec.stop.targets = {Integer(0, 1) == 0 ? 0.1 : 0.9};
  const auto factor = spec.scheduler.options.find("reduction_factor");
  if (factor != spec.scheduler.options.end() && Integer(0, 1) == 0) factor->second = Integer(2, 4);
  return edit;
}

// Shrinks or extends some of the ranges, and removes the last value from some of the choices.
SearchSpace People::DrawRanges(const SearchSpace& space) {
  std::vector<Parameter> parameters = space.parameters();
  for (Parameter& parameter : parameters) {
    if (Integer(0, 1) == 0) continue;
    if (auto* range = std::get_if<FloatDomain>(&parameter.domain)) {
      range->max = Integer(0, 1) == 0 ? range->max * 2 : (range->min + range->max) / 2;
    } else if (auto* integers = std::get_if<IntDomain>(&parameter.domain)) {
      integers->max = Integer(0, 1) == 0 ? integers->max + integers->step : integers->min;
    } else if (auto* choice = std::get_if<CategoricalDomain>(&parameter.domain)) {
      if (choice->values.size() > 1) choice->values.pop_back();
    }
  }
  return SearchSpace::Check(parameters).empty() ? SearchSpace(std::move(parameters)) : space;
}

std::optional<Command> People::DrawActionOn(const SweepBook& sweep) {
  if (edit_ && Integer(0, 2) == 0) return DrawEdit(sweep);
  if (sweep.deletion_scheduled && Integer(0, 1) == 0) return UndeleteSweep{sweep.id};
  if (HasEnded(sweep.state) && Integer(0, 9) == 0)
    return DeleteSweep{sweep.id, books_.last_seq,
                       Seconds(10.0 * static_cast<double>(Integer(0, 1)))};
  switch (Integer(0, 9)) {
    case 0:
    case 1:
      return PauseSweep{sweep.id};
    case 2:
    case 3:
      return ResumeSweep{sweep.id};
    case 4:
    case 5: {
      ExtendSweep extend{.sweep = sweep.id};
      if (Integer(0, 1) == 0)
        extend.max_trials = sweep.CreatedCount() + static_cast<int>(Integer(1, 3));
      if (Integer(0, 1) == 0) extend.max_step = Step(sweep.spec.max_step.value + Integer(1, 3));
      return extend;
    }
    case 6:
      return StopSweep{sweep.id};
    case 7:
      return KillSweep{sweep.id};
    default: {
      if (sweep.trials.empty()) return std::nullopt;
      const TrialBook& example = sweep.trials.begin()->second;
      std::optional<TrialPatch> patch;
      if (sweep.spec.program.code && Integer(0, 1) == 0)
        patch = TrialPatch{.sha256 = std::to_string(keys_), .code = kPatchedDigest};
      SubmitUntilAnswered(
          EnqueueTrial{sweep.id, example.config, "enqueue-" + std::to_string(++keys_), patch});
      return std::nullopt;
    }
  }
}

std::optional<Command> People::DrawActionOn(const TrialBook& trial) {
  switch (Integer(0, 5)) {
    case 0:
      return KillTrial{trial.id};
    case 1:
    case 2: {
      if (trial.checkpoints.empty()) return std::nullopt;
      const CheckpointBook& checkpoint =
          trial.checkpoints[static_cast<size_t>(Integer(0, std::ssize(trial.checkpoints) - 1))];
      const CheckpointId id{trial.id, checkpoint.attempt, checkpoint.ref.step};
      if (Integer(0, 3) == 0) return DropCheckpoint{id, trial.Record(books_.last_seq)};
      return PinCheckpoint{id, Integer(0, 2) > 0};
    }
    default: {
      ReopenTrial reopen{.record = trial.Record(books_.last_seq)};
      if (Integer(0, 1) == 0) {
        reopen.until = Step(trial.last_step.value + Integer(1, 3));
      } else {
        reopen.from_start = Integer(0, 1) == 0;
      }
      return reopen;
    }
  }
}

}  // namespace attune::sim
