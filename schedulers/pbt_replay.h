#pragma once

#include "core/algorithms/algorithms.h"
#include "core/algorithms/scheduler.h"
#include "core/space/schedule.h"

namespace attune::schedulers {

// Trains each trial by a schedule: from some steps on with other configurations, such as the best
// trial of a population had one after another (Jaderberg et al., 2017, §4.1: the schedules that
// population-based training finds; Ray Tune's PopulationBasedTrainingReplay trains one again).
//
// A trial begins with the configuration that it was given. At each step of the schedule it is
// paused at a checkpoint and goes on from that with the next configuration, as a clone does. Where
// a report passes several steps, the last of them counts. Nothing is ranked and nothing stopped.
class PbtReplay final : public Scheduler {
 public:
  explicit PbtReplay(ConfigSchedule schedule) : schedule_(std::move(schedule)) {}

  Verdict Judge(const TrialView& trial, const Report& report) const override;
  std::optional<Step> NextMilestone(const TrialView& trial, Step after) const override;
  NextMove Next(const SweepView& sweep) const override;
  void Observe(const Event&) override {}
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}

 private:
  // What a trial that has come to this step is trained with from there on; null: as it began.
  const Config* At(Step step) const;

  ConfigSchedule schedule_;
};

Entry<Scheduler> PbtReplayEntry();

}  // namespace attune::schedulers
