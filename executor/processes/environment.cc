#include "executor/processes/environment.h"

#include <unistd.h>

#include <functional>
#include <map>
#include <string_view>

#include "channel/launcher.h"

namespace attune::gang {

std::vector<std::string> ProgramEnvironment(const EnvironmentChanges& changes) {
  std::map<std::string, std::string, std::less<>> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view variable = *each;
    const size_t equals = variable.find('=');
    if (equals == std::string_view::npos) continue;
    variables.emplace(variable.substr(0, equals), variable.substr(equals + 1));
  }
  for (const char* name :
       {"ATTUNE_TOKEN", "ATTUNE_CHANNEL_FD", "ATTUNE_LAUNCHER_FD", channel::kCgroupVariable}) {
    variables.erase(name);
  }
  for (const auto& [name, value] : changes) variables[name] = value;

  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

}  // namespace attune::gang
