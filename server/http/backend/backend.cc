#include "server/http/backend/backend.h"

namespace attune::server {

Backend::ExecutorStatus StatusOf(const State& state, const Executor& executor,
                                 std::optional<double> silent_seconds) {
  const Host& host = executor.host;
  const bool online = !executor.lost && silent_seconds;
  const char* there = executor.drain ? executor.attempts.empty() ? "drained" : "draining"
                      : !executor.problem.empty() ? "unhealthy"
                      : executor.quarantine       ? "quarantined"
                                                  : "online";
  Backend::ExecutorStatus status{.name = executor.name,
                                 .state = online ? there : "lost",
                                 .address = executor.address,
                                 .total = host.total,
                                 .free = host.FreeResources(),
                                 .labels = host.labels,
                                 .drain = executor.drain,
                                 .problem = executor.problem,
                                 .quarantine = executor.quarantine,
                                 .silent_seconds = silent_seconds};
  if (status.drain) status.drain->since = ShownTime(state, status.drain->since);
  if (status.quarantine) status.quarantine->until = ShownTime(state, status.quarantine->until);
  for (const auto& [epoch, id] : executor.attempts) {
    const Attempt& live = *state.Find(id)->live;
    Backend::ExecutorStatus::Part part{live.id, -1, -1};
    for (int rank = 0; rank < std::ssize(live.ranks); ++rank) {
      if (live.ranks[static_cast<size_t>(rank)].executor != executor.name) continue;
      if (part.first_rank < 0) part.first_rank = rank;
      part.last_rank = rank;
    }
    status.running.push_back(part);
  }
  return status;
}

}  // namespace attune::server
