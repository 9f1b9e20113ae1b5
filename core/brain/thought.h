#pragma once

#include <memory>
#include <vector>

#include "core/log/command.h"
#include "core/state/state.h"

// Proposals of searchers that think. The brain says which are due; somebody else makes them, on
// whatever thread, and brings them as commands.
namespace attune {

// A proposal that is due. It shares nothing with the brain.
struct Thought {
  SweepId sweep;
  ProposalNumber proposal;
  EventSeq position;                   // of the log, up to which the searcher has seen it
  std::unique_ptr<Searcher> searcher;  // a copy, as it was there

  // May take long. The same every time, before a restart and after it.
  Propose Think() const { return {sweep, proposal, position, searcher->Suggest(proposal)}; }
};

// The proposals that were begun after this position and are still due. To be thought about only
// once the log is durable up to them.
std::vector<Thought> Thoughts(const State& state, EventSeq after);

// The one of this sweep. REQUIRES: sweep.thinking.
Thought ThoughtOf(const State& state, const Sweep& sweep);

}  // namespace attune
