#include "server/server_backend.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace attune::server {

Result<SweepId> ServerBackend::CreateSweep(NewSweep sweep) {
  const std::string key = sweep.idempotency_key;
  const auto events =
      conductor_.Execute(attune::CreateSweep{std::move(sweep.spec), std::move(sweep.source), key});
  if (!events.ok()) return events.error();
  if (!events->empty()) return std::get<SweepCreated>(events->front().fact).sweep;
  SweepId id;
  conductor_.Query([&](const Brain& brain) {
    if (const Sweep* earlier = brain.state().FindByKey(key)) id = earlier->id;
  });
  return id;
}

Status ServerBackend::StopSweep(SweepId sweep) {
  const auto events = conductor_.Execute(attune::StopSweep{sweep});
  return events.ok() ? Status() : Status(events.error());
}

Status ServerBackend::KillSweep(SweepId sweep) {
  const auto events = conductor_.Execute(attune::KillSweep{sweep});
  return events.ok() ? Status() : Status(events.error());
}

std::string ServerBackend::Waiting(SweepId sweep) {
  std::string why;
  conductor_.Query([&](const Brain& brain) {
    if (const Sweep* found = brain.state().Find(sweep)) why = brain.Waiting(*found);
  });
  return why;
}

std::vector<Backend::ExecutorStatus> ServerBackend::Executors() {
  std::vector<ExecutorStatus> all;
  conductor_.Query([&](const Brain& brain) {
    for (const auto& [name, executor] : brain.state().executors) {
      const Host& host = executor.host;
      all.push_back({.name = name,
                     .state = !executor.lost && executors_.Reachable(name) ? "online" : "lost",
                     .address = executor.address,
                     .total = host.total,
                     .free = {.cpus = host.cpus_free,
                              .gpus = static_cast<int>(host.gpus_free.size()),
                              .memory_bytes = host.memory_free}});
    }
  });
  return all;
}

Result<Backend::LogSlice> ServerBackend::ReadLog(const AttemptId& attempt, int rank, int64_t offset,
                                                 uint32_t limit_bytes) {
  const auto row = reader_.Attempt(attempt);
  if (!row.ok()) return row.error();
  const auto ranks = nlohmann::json::parse(row->ranks, nullptr, false);
  if (!ranks.is_array() || rank < 0 || rank >= std::ssize(ranks))
    return Error{ErrorCode::kNotFound, "attempt " + ToString(attempt) + " has no rank " +
                                           std::to_string(rank) + ": its ranks are 0 to " +
                                           std::to_string(std::ssize(ranks) - 1)};
  auto slice = executors_.ReadLog(ranks[static_cast<size_t>(rank)].value("executor", ""), attempt,
                                  rank, offset, limit_bytes);
  if (!slice.ok()) return slice.error();
  return LogSlice{std::move(slice->data), slice->offset, slice->file_bytes};
}

}  // namespace attune::server
