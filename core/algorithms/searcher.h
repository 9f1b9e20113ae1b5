#pragma once

#include "core/log/archive.h"
#include "core/log/event.h"
#include "core/log/suggestion.h"

namespace attune {

// Proposes configurations. It is deterministic: the same events and proposal number give the same
// suggestion. It uses no clock, I/O or thread.
class Searcher {
 public:
  virtual ~Searcher() = default;

  // Returns a configuration that is valid in the sweep's space, or Wait, or Exhausted. After Wait,
  // the searcher is asked again after the next event of the sweep. If it waits although no trial
  // runs or will run, it counts as exhausted.
  //
  // Random numbers depend on the proposal number, so trials that the searcher did not propose do
  // not change them.
  virtual Suggestion Suggest(ProposalNumber proposal) const = 0;

  // Whether a suggestion takes longer than a millisecond, so that reports cannot wait for it. Then
  // Suggest is called for a copy on another thread, and the answer comes back as a command. The
  // result changes only in Observe and Adapt.
  virtual bool NeedsThread() const { return false; }

  // Called for every event of the sweep, in order. Only this and Adapt change the searcher.
  virtual void Observe(const Event& event) = 0;

  // The sweep was edited: its limits, ranges or options changed, but not the searcher. Observations
  // stay. REQUIRES: the table can make a searcher for this spec.
  virtual void Adapt(const SweepSpec& spec) = 0;

  // Save writes everything that Observe has changed. Load reads it into a new searcher for the same
  // spec.
  virtual void Save(ArchiveWriter& archive) const = 0;
  virtual void Load(ArchiveReader& archive) = 0;
};

}  // namespace attune
