#include "core/state/shared_state.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "core/state/ended.h"

namespace attune {

SharedState SharedStateWithout(const State& state, SweepId deleted) {
  SharedState shared{.last_epoch = state.last_epoch, .changes_after = state.changes_after};
  if (state.reservation && state.reservation->sweep != deleted)
    shared.reserved_since = state.reservation->since;
  for (const auto& [name, executor] : state.executors) {
    if (executor.gang_history != GangHistory{})
      shared.gang_history.emplace(name, executor.gang_history);
  }
  std::ranges::copy_if(state.reopenable, std::back_inserter(shared.reopenable),
                       [&](SweepId id) { return id != deleted; });
  return shared;
}

void RestoreShared(State& state, const SharedState& shared, SweepId deleted) {
  state.last_epoch = std::max(state.last_epoch, shared.last_epoch);
  if (!shared.reserved_since) {
    state.changed_parts.reservation |= state.reservation.has_value();
    state.reservation.reset();
  } else if (state.reservation) {
    state.reservation->since = *shared.reserved_since;
  }
  for (auto& [name, executor] : state.executors) {
    const auto history = shared.gang_history.find(name);
    executor.gang_history = history == shared.gang_history.end() ? GangHistory{} : history->second;
  }
  // If the events of the deleted sweep were erased, an older sweep may not have been forgotten yet.
  const std::set<SweepId> stay(shared.reopenable.begin(), shared.reopenable.end());
  for (const SweepId id : std::exchange(state.reopenable, {})) {
    if (stay.contains(id)) {
      state.reopenable.push_back(id);
    } else {
      ForgetEnded(state, id);
    }
  }
  state.changes_after = std::max(state.changes_after, shared.changes_after);
  std::erase_if(state.changes, [&](const RecordChange& change) {
    return change.seq <= state.changes_after || change.trial.sweep == deleted;
  });
}

}  // namespace attune
