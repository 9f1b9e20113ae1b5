#pragma once

#include <chrono>
#include <filesystem>

#include "base/result.h"
#include "kubernetes/tools.h"
#include "pilots/fleet_folder.h"

namespace attune::cli {

// What the commands must know about a fleet that runs.
struct KubernetesSettings {
  kubernetes::Location location;
  std::chrono::seconds grace{};  // terminationGracePeriodSeconds of its pods
};

// Reads the settings. kNotFound if no pilots run.
Result<KubernetesSettings> ReadSettings(const pilots::FleetFolder& folder);
// Saves the settings. kConflict if the fleet runs in another place.
Status SaveSettings(const KubernetesSettings& settings, pilots::FleetFolder& folder);
// Forgets the settings, after the last pilot has ended.
Status ForgetSettings(pilots::FleetFolder& folder);

// The file in which kubectl finds the object of a call.
std::filesystem::path DraftFile(const pilots::FleetFolder& folder);

}  // namespace attune::cli
