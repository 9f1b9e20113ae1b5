#pragma once

#include <string>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/scheduler.h"

namespace attune::schedulers {

// Trials run in the order in which they were proposed, each to its end: nothing is ever judged.
class Fifo final : public Scheduler {
 public:
  Verdict Judge(const TrialView& trial, const Report& report) const override;
  std::optional<Step> NextMilestone(const TrialView&, Step) const override { return std::nullopt; }
  void Observe(const Event&) override {}
  void Adapt(const SweepSpec&) override {}
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}
};

// Known as "fifo", and as "none" to those who ask for no scheduler.
Entry<Scheduler> FifoEntry(std::string name);

}  // namespace attune::schedulers
