#pragma once

#include "core/log/archive.h"
#include "core/log/event.h"
#include "core/log/suggestion.h"

namespace attune {

// Proposes configurations. Deterministic: the same events and proposal number give the same
// suggestion. It sees neither clock nor I/O nor another thread.
class Searcher {
 public:
  virtual ~Searcher() = default;

  // A configuration that is valid in the sweep's space; or Wait, and it is asked again after the
  // next event of the sweep; or Exhausted. A searcher that waits while nothing of its sweep runs or
  // is to run waits for nothing, and counts as exhausted.
  //
  // Randomness is keyed by the proposal number: trials that the searcher did not propose have none,
  // and shift nothing.
  virtual Suggestion Suggest(ProposalNumber proposal) const = 0;

  // Whether a suggestion takes longer than a report may wait (a millisecond): then Suggest is
  // called for a copy, on a thread of its own, and what it answers comes back as a command. Changes
  // with what is observed only.
  virtual bool Thinks() const { return false; }

  // Called for every event of the sweep, in order; changes come by it and by Adapt only.
  virtual void Observe(const Event& event) = 0;

  // The sweep was edited: other limits, ranges or options, of the same searcher. What was observed
  // stays. REQUIRES: the table makes a searcher of this spec.
  virtual void Adapt(const SweepSpec& spec) = 0;

  // All that Observe has changed, as bytes, and back again into a searcher of the same spec.
  virtual void Save(ArchiveWriter& archive) const = 0;
  virtual void Load(ArchiveReader& archive) = 0;
};

}  // namespace attune
