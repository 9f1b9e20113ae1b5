#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "kubernetes/json.h"
#include "pilots/plan.h"

namespace attune::kubernetes {

// Time between SIGTERM and SIGKILL for a pod whose template names none.
inline constexpr std::chrono::seconds kGraceDefault{30};
// The executor ends this long before that, so that it can say goodbye to the server.
inline constexpr std::chrono::seconds kGraceReserve{10};
inline constexpr std::chrono::seconds kGraceMin{15};

// The oldest API server with Indexed Jobs that can be suspended, as a stable feature.
inline constexpr int kMinorMin = 24;

// The parts of a pilot that are the same for all pilots of a fleet.
struct PilotOptions {
  std::string fleet;
  int nodes = 1;
  std::string server;               // HOST:PORT for executors
  std::vector<std::string> labels;  // NAME=VALUE, the executors' labels
  std::chrono::seconds give_up{};   // a pilot without contact to the server for this long ends
  std::string owner_uid;            // of the fleet's Secret
};

// A user's Job that passed CheckTemplate().
struct Template {
  Json job;
  std::chrono::seconds grace{};  // terminationGracePeriodSeconds
  pilots::Resources resources;   // of each pod
};

// Checks a user's Job. `file` is for messages, which name the field. kInvalid if Attune cannot run
// executors in such a job, or if it has a field that Attune writes.
Result<Template> CheckTemplate(Json job, const std::filesystem::path& file);

// The name of the fleet's Secret.
std::string SecretName(const std::string& fleet);

// The Secret with the text that executors join with. It owns the fleet's jobs: if it is deleted,
// Kubernetes deletes them as well. `owner`: an object that owns the Secret, or null.
Json BuildSecret(const std::string& fleet, const std::string& join, const Json& owner);

// The Job of a pilot: an Indexed Job with an executor in each pod.
Json BuildJob(const Template& base, const PilotOptions& options, const std::string& name);

// The number of a quantity of Kubernetes such as 2, 500m, 64Mi or 1e9. Negative if it is not one.
double ParseQuantity(const std::string& text);

}  // namespace attune::kubernetes
