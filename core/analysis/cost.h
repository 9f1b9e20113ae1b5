#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"

namespace attune {

// A checkpoint that an attempt saved.
struct SavedStep {
  Step step;
  Time time;
};

// An attempt, as far as its cost depends on it.
struct AttemptUse {
  uint32_t workers = 0;     // 0: it runs outside Attune, and counts as one worker
  double gpus = 0;          // of all workers; 0.25: a quarter of one GPU
  Time begin;               // when it got its slots
  std::optional<Time> end;  // when it released them; nullopt: it still holds them
  bool broken = false;      // it failed or was lost
  // The step of the checkpoint that it resumed from; nullopt: it began from the start.
  std::optional<Step> resumed_from;
  // That checkpoint is of another trial, and this is the first attempt of the trial to use it.
  bool cloned = false;
  // The step and the training time of its newest report. No training time means no report.
  Step last_step;
  Seconds seconds{0};
  std::vector<SavedStep> checkpoints;  // its own, in order of steps
};

// A trial with its attempts in order.
struct TrialUse {
  bool stopped = false;  // by the scheduler or by a limit
  Step last_step;        // of its newest report
  std::vector<AttemptUse> attempts;
};

// The cost of a sweep, in hours of GPUs, or in hours of workers if it uses no GPU.
struct SweepCost {
  bool has_gpus = false;
  double used_hours = 0;
  // The part of used_hours whose work was lost, because later attempts repeated it or must do so.
  double wasted_hours = 0;
  // An estimate of the hours that stopped trials would have needed to reach the last step. nullopt:
  // the sweep has no last step.
  std::optional<double> saved_hours;
  int64_t attempts = 0;
  int64_t running = 0;  // attempts that still hold slots, which count up to now
  int64_t broken = 0;   // attempts that failed or were lost
  int64_t stopped = 0;  // trials
};

// The price of a GPU for an hour.
struct GpuHourPrice {
  double amount = 0;
  std::string currency;  // a text for people; may be empty
};

// Adds up the cost of trials. `last_step` is the step at which the sweep's trials are complete; 0:
// their programs end by themselves.
//
// - An attempt uses its GPUs or workers from `begin` to `end`. A running attempt counts up to
//   `now`.
// - An attempt wastes the time after the last checkpoint from which a later attempt continued, or
//   all its time if there is none. Later attempts of the same trial decide this, up to an attempt
//   that continued from another trial's checkpoint. A broken attempt without a successor wastes the
//   time after its newest checkpoint. Another attempt without a successor wastes nothing.
// - A stopped trial saves the steps up to `last_step`, at the average time of a step of this
//   trial, with the GPUs or workers of its newest attempt. A trial without a report saves nothing.
//
// No total is negative, and the wasted hours of an attempt never exceed its used hours.
SweepCost CostOf(const std::vector<TrialUse>& trials, Step last_step, Time now);

}  // namespace attune
