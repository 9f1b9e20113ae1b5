#pragma once

#include <optional>
#include <vector>

#include "core/log/archive.h"
#include "core/log/event.h"
#include "core/log/verdict.h"

namespace attune {

// What a scheduler may know of a trial beside its own observations.
struct TrialView {
  TrialId id;
  const Config& config;
};

// Judges reports and says at which steps it wants to. Deterministic, like a Searcher.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  // The verdict on a report that reached the trial's milestone, before the report was observed.
  // A report with a step at which nothing is to be decided gets Continue.
  virtual Verdict Judge(const TrialView& trial, const Report& report) const = 0;

  // The first step after `after` at which this trial is judged; nullopt: at no step.
  // A trial that reaches the sweep's max_step is complete whatever the scheduler says.
  virtual std::optional<Step> NextMilestone(const TrialView& trial, Step after) const = 0;

  // The paused trial that a free slot should run before any new one; nullopt: none.
  virtual std::optional<TrialNumber> Promote() const { return std::nullopt; }

  // Called for every event of the sweep, in order; the only way the scheduler changes. A
  // TrialDecided may be another rule's than the scheduler's own: its reason names the rule.
  virtual void Observe(const Event& event) = 0;

  // All that Observe has changed, as bytes, and back again into a scheduler of the same spec. After
  // an extension the spec has larger limits than the one that was saved.
  virtual void Save(ArchiveWriter& archive) const = 0;
  virtual void Load(ArchiveReader& archive) = 0;

  // The milestones shared by all trials, in order; empty when there are none.
  virtual std::vector<Step> Rungs() const { return {}; }
};

}  // namespace attune
