#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kubernetes/json.h"
#include "pilots/engine.h"

namespace attune::kubernetes {

// Labels of the jobs and pods of a fleet.
inline constexpr const char* kFleetLabel = "attune.dev/fleet";
inline constexpr const char* kPilotLabel = "attune.dev/pilot";  // the pilot's number

// The state of a job that Kueue or a user suspends.
inline constexpr const char* kSuspended = "Suspended";

// Converts a list of jobs and pods, as the API server returns it, to pilots. `now`: seconds since
// 1970. The reasons are the words of Kubernetes, such as the scheduler's.
std::vector<pilots::Job> ReadJobs(const Json& list, int64_t now);

// A pod of a pilot.
struct PodName {
  std::string name;
  std::string index;  // the number of its node in the pilot
};
// The pods in a list of jobs and pods, by their index.
std::vector<PodName> ReadPodNames(const Json& list);

// Returns whether only events can explain why this job waits: it has no pods.
bool NeedsEvents(const pilots::Job& job);

// Adds the reasons that only events have, such as an exceeded quota or a queue of Kueue.
void AddReasonsOfEvents(const Json& events, std::vector<pilots::Job>& jobs);

// Seconds since 1970 of a time such as 2026-11-30T07:39:31Z; 0 if it is not one.
int64_t ParseTime(const std::string& text);

}  // namespace attune::kubernetes
