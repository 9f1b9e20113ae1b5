#pragma once

#include <memory>
#include <vector>

#include "core/log/command.h"
#include "core/state/state.h"

// Proposals of searchers that think (Searcher::NeedsThread). The brain says which proposals are
// due. The server computes them on other threads and brings the answers as commands.
namespace attune {

// A proposal that is due. It shares no data with the brain.
struct Thought {
  SweepId sweep;
  ProposalNumber proposal;
  EventSeq position;                   // the last event that the searcher has observed
  std::unique_ptr<Searcher> searcher;  // a copy of the searcher at this position

  // May take long. The answer is always the same, even after a restart.
  Propose Think() const { return {sweep, proposal, position, searcher->Suggest(proposal)}; }
};

// The proposals that were begun after this position and are still due. Compute a proposal only once
// the log is durable up to its position.
std::vector<Thought> Thoughts(const State& state, EventSeq after);

// The due proposal of this sweep. REQUIRES: sweep.thinking.
Thought ThoughtOf(const State& state, const Sweep& sweep);

}  // namespace attune
