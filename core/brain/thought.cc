#include "core/brain/thought.h"

#include <utility>

#include "base/check.h"
#include "core/brain/next_trial.h"

namespace attune {

std::vector<Thought> Thoughts(const State& state, EventSeq after) {
  std::vector<Thought> thoughts;
  for (const auto& [id, sweep] : state.sweeps) {
    if (sweep.thinking && sweep.thinking->position > after && MayCreate(sweep))
      thoughts.push_back(ThoughtOf(state, sweep));
  }
  return thoughts;
}

// An edit of the sweep cancels the proposal, so the spec has not changed since that position.
Thought ThoughtOf(const State& state, const Sweep& sweep) {
  auto searcher = state.algorithms->MakeSearcher(sweep.spec);
  ATTUNE_CHECK(searcher.ok());
  const BegunProposal& begun = *sweep.thinking;
  ArchiveReader archive(begun.searcher);
  (*searcher)->Load(archive);
  ATTUNE_CHECK(archive.AtEnd());
  return {sweep.id, begun.proposal, begun.position, std::move(searcher).value()};
}

}  // namespace attune
