#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/log/archive.h"
#include "core/log/event.h"
#include "core/log/suggestion.h"
#include "core/log/verdict.h"

namespace attune {

// The trial that a scheduler judges. Everything else a scheduler knows from the events it observed.
struct TrialView {
  TrialId id;
  const Config& config;
};

// The sweep as its scheduler sees it when it chooses the next move. The view refers to the state,
// so making one is cheap for any size of sweep.
struct SweepView {
  // Trials that the scheduler paused and whose gangs have left, with the step they have reached.
  const std::map<TrialNumber, Step>& paused;
  int running = 0;          // trials with a gang that holds slots
  int waiting = 0;          // trials that were created or promoted and wait for a gang
  int created = 0;          // trials so far
  bool may_create = false;  // neither a limit nor the searcher forbids another
};

// A paused trial continues.
struct Promote {
  TrialNumber trial;
  Reason reason;
  std::optional<Config> config = {};       // its new configuration; nullopt: the same
  std::optional<CheckpointId> donor = {};  // where it resumes; nullopt: from its own checkpoint
};
// The searcher's next trial starts, if there is one.
struct StartNew {};
// Nothing more starts, for this reason. When all running and waiting trials have ended, the sweep
// ends, and its paused trials with it. A scheduler that has answered Done keeps this answer until
// the sweep is edited.
struct Done {
  std::string text;
};

// Wait means that nothing starts now; the scheduler is asked again after the next event of the
// sweep. If no trial runs or waits, no event can come: the paused trials end, and then the sweep.
using NextMove = std::variant<StartNew, Promote, Wait, Done>;

// Judges reports and chooses the steps at which it does so. It is deterministic, like a Searcher.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  // The verdict on a report that reached the trial's milestone. It is called before Observe gets
  // the report. Returns Continue if the scheduler decides nothing at this step.
  virtual Verdict Judge(const TrialView& trial, const Report& report) const = 0;

  // The first step after `after` at which this trial is judged; nullopt: never. A trial that
  // reaches the sweep's max_step is complete; the scheduler is not asked.
  virtual std::optional<Step> NextMilestone(const TrialView& trial, Step after) const = 0;

  // How the sweep uses free slots. Trials that wait for a gang go first; the scheduler is not asked
  // then. A promotion of a trial that is not paused, or from a dropped checkpoint, counts as Wait.
  virtual NextMove Next(const SweepView&) const { return StartNew{}; }

  // The checkpoints that a later exploit or promotion may name. They are kept, and their trials
  // stay in memory, until they leave this set or the sweep ends. A TrialReported must not change
  // the set.
  virtual const std::set<CheckpointId>& Retained() const {
    static const std::set<CheckpointId> none;
    return none;
  }

  // Called for every event of the sweep, in order. Only this and Adapt change the scheduler. A
  // TrialDecided may come from another rule, which its reason names.
  virtual void Observe(const Event& event) = 0;

  // The sweep was edited: its limits, ranges or options changed, but not the scheduler.
  // Observations stay. REQUIRES: the table can make a scheduler for this spec.
  virtual void Adapt(const SweepSpec& spec) = 0;

  // Save writes everything that Observe has changed. Load reads it into a new scheduler for the
  // same spec.
  virtual void Save(ArchiveWriter& archive) const = 0;
  virtual void Load(ArchiveReader& archive) = 0;

  // Whether trials may continue from checkpoints of other trials.
  virtual bool MakesClones() const { return false; }

  // The milestones that all trials share, in order; empty if there are none.
  virtual std::vector<Step> Rungs() const { return {}; }
};

}  // namespace attune
