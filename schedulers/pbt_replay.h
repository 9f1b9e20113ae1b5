#pragma once

#include "core/algorithms/algorithms.h"
#include "core/algorithms/scheduler.h"
#include "core/space/schedule.h"

namespace attune::schedulers {

// Trains each trial by a schedule that changes its configuration at some steps, such as the history
// of the best trial of a population (Jaderberg et al., 2017, §4.1). In Ray Tune this is
// PopulationBasedTrainingReplay.
//
// A trial starts with its configuration. At each step of the schedule it is paused at a checkpoint
// and continues from there with the next configuration, as a clone does. If a report passes several
// steps, the last one counts. No trial is ranked or stopped.
class PbtReplay final : public Scheduler {
 public:
  explicit PbtReplay(ConfigSchedule schedule) : schedule_(std::move(schedule)) {}

  Verdict Judge(const TrialView& trial, const Report& report) const override;
  std::optional<Step> NextMilestone(const TrialView& trial, Step after) const override;
  NextMove Next(const SweepView& sweep) const override;
  bool MakesClones() const override { return true; }
  void Observe(const Event&) override {}
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}

 private:
  // The configuration from this step on; null: the initial one.
  const Config* ConfigAt(Step step) const;

  ConfigSchedule schedule_;
};

Entry<Scheduler> PbtReplayEntry();

}  // namespace attune::schedulers
