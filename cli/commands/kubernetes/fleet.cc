#include "cli/commands/kubernetes/fleet.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "kubernetes/pilot.h"

namespace attune::cli {
namespace {

constexpr const char* kNamespaceSetting = "namespace";
constexpr const char* kContextSetting = "context";
constexpr const char* kGraceSetting = "grace";

std::string Describe(const kubernetes::Location& location) {
  return "namespace " + location.name_space +
         (location.context.empty() ? "" : " of the context " + location.context);
}

}  // namespace

Result<KubernetesSettings> ReadSettings(const pilots::FleetFolder& folder) {
  const auto find = [&](const char* name) {
    const auto found = folder.fleet().settings.find(name);
    return found == folder.fleet().settings.end() ? "" : found->second;
  };
  KubernetesSettings settings{
      .location = {.context = find(kContextSetting), .name_space = find(kNamespaceSetting)},
      .grace = std::chrono::seconds(std::atoi(find(kGraceSetting).c_str()))};
  settings.grace = std::max(settings.grace, kubernetes::kGraceDefault);
  if (!settings.location.name_space.empty()) return settings;
  return Error{ErrorCode::kNotFound,
               "this fleet has no pilots; `attune kubernetes up` starts them when gangs need them"};
}

Status SaveSettings(const KubernetesSettings& settings, pilots::FleetFolder& folder) {
  const Result<KubernetesSettings> saved = ReadSettings(folder);
  if (saved.ok() && saved->location != settings.location)
    return Error{ErrorCode::kConflict,
                 "the fleet of " + folder.path().parent_path().string() + " runs in the " +
                     Describe(saved->location) +
                     "\nend it with `attune kubernetes down`, or use another --data-dir"};
  pilots::FleetFolder::Fleet fleet = folder.fleet();
  fleet.settings[kNamespaceSetting] = settings.location.name_space;
  fleet.settings[kContextSetting] = settings.location.context;
  fleet.settings[kGraceSetting] = std::to_string(settings.grace.count());
  return folder.Save(std::move(fleet));
}

Status ForgetSettings(pilots::FleetFolder& folder) {
  pilots::FleetFolder::Fleet fleet = folder.fleet();
  for (const char* name : {kNamespaceSetting, kContextSetting, kGraceSetting})
    fleet.settings.erase(name);
  return folder.Save(std::move(fleet));
}

std::filesystem::path DraftFile(const pilots::FleetFolder& folder) {
  return folder.path() / "object.json";
}

}  // namespace attune::cli
