#include "cli/watch/event_data.h"

#include "base/result.h"

namespace attune::cli {
namespace {

// Leaves `value` unchanged if the event has no such member or its type differs.
template <class T>
void ReadMember(const Json& data, const char* name, T& value) {
  const Json& member = MemberOf(data, name);
  if (member.is_null()) return;
  if (Result<T> read = rest::Parse<T>(member); read.ok()) value = *std::move(read);
}

}  // namespace

EventData ReadEvent(const ServerEvent& event) {
  EventData data;
  const auto read = [&](const char* name, auto& value) { ReadMember(event.data, name, value); };
  read("time", data.time);
  read("actor", data.actor);
  read("state", data.state);
  read("reason", data.reason);
  read("end_state", data.end_state);
  read("max_trials", data.max_trials);
  read("max_step", data.max_step);
  read("changes", data.changes);
  read("trial", data.trial);
  read("attempt", data.attempt);
  read("step", data.step);
  read("outcome", data.outcome);
  read("failure", data.failure);
  read("config", data.config);
  read("metrics", data.metrics);
  read("executor", data.executor);
  read("drained", data.drained);
  read("quarantined", data.quarantined);
  read("until", data.until);
  read("health_problem", data.health_problem);
  read("cpus", data.cpus);
  read("gpus", data.gpus);
  read("memory_bytes", data.memory_bytes);
  return data;
}

}  // namespace attune::cli
