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

// What a scheduler may know of a trial beside its own observations.
struct TrialView {
  TrialId id;
  const Config& config;
};

// What a scheduler may know of its sweep when it says what comes next. A look at the brain's own
// books: making one costs nothing, however large the sweep.
struct SweepView {
  // Those that the scheduler paused and whose gangs have left, with the step they have come to.
  const std::map<TrialNumber, Step>& paused;
  int running = 0;          // trials with a gang that holds slots
  int waiting = 0;          // trials that have been started or promoted and have no gang now
  int created = 0;          // trials so far
  bool may_create = false;  // neither a limit nor the searcher forbids another
};

// A paused trial goes on.
struct Promote {
  TrialNumber trial;
  Reason reason;
  std::optional<Config> config = {};       // with another configuration
  std::optional<CheckpointId> donor = {};  // from this checkpoint and not from its own
};
// The searcher's next trial, where there may be one.
struct New {};
// Nothing more is started; the sweep ends when what runs and waits has, for this reason. Paused
// trials end with it. Once said, it stays so until the sweep is edited.
struct Done {
  std::string text;
};

// Wait: nothing now; asked again after the next event of the sweep. If nothing of the sweep runs or
// waits, no event can come: then its paused trials end, and after them the sweep.
using NextMove = std::variant<New, Promote, Wait, Done>;

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

  // What free slots are for. Trials that were started and wait for a gang go first, unasked. A
  // promotion of a trial that is not paused, or from a checkpoint that is gone, counts as Wait.
  virtual NextMove Next(const SweepView&) const { return New{}; }

  // The checkpoints that it may name in an exploit or a promotion to come. They stay, and their
  // trials stay in memory, until it lets go of them or the sweep ends. A plain report changes
  // nothing here.
  virtual const std::set<CheckpointId>& Retained() const {
    static const std::set<CheckpointId> none;
    return none;
  }

  // Called for every event of the sweep, in order; changes come by it and by Adapt only. A
  // TrialDecided may be another rule's than the scheduler's own: its reason names the rule.
  virtual void Observe(const Event& event) = 0;

  // The sweep was edited: other limits, ranges or options, of the same scheduler. What was observed
  // stays. REQUIRES: the table makes a scheduler of this spec.
  virtual void Adapt(const SweepSpec& spec) = 0;

  // All that Observe has changed, as bytes, and back again into a scheduler of the same spec.
  virtual void Save(ArchiveWriter& archive) const = 0;
  virtual void Load(ArchiveReader& archive) = 0;

  // The milestones shared by all trials, in order; empty when there are none.
  virtual std::vector<Step> Rungs() const { return {}; }
};

}  // namespace attune
