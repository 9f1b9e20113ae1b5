#include "executor/processes/environment.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <string_view>

#include "channel/launcher.h"

namespace attune::gang {
namespace {

// Variables for this process only.
constexpr std::string_view kExecutorVariables[] = {"ATTUNE_TOKEN",       "ATTUNE_CHANNEL_FD",
                                                   "ATTUNE_CHANNEL",     "ATTUNE_CHANNEL_PARENT",
                                                   "ATTUNE_LAUNCHER_FD", channel::kCgroupVariable};
// Variables that name this process's task in a batch system, or its rank in MPI or torchrun.
// Libraries in a rank would mistake them for the rank's number in its gang.
constexpr std::string_view kTaskVariables[] = {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID",
                                               "SLURM_NPROCS", "TORCHELASTIC_USE_AGENT_STORE"};
constexpr std::string_view kTaskPrefixes[] = {"SLURM_NTASKS", "SLURM_STEP_", "PMI_", "PMIX_",
                                              "OMPI_"};

bool IsInherited(std::string_view name) {
  return std::ranges::find(kExecutorVariables, name) == std::end(kExecutorVariables) &&
         std::ranges::find(kTaskVariables, name) == std::end(kTaskVariables) &&
         std::ranges::none_of(kTaskPrefixes,
                              [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::vector<std::string> ProgramEnvironment(const EnvironmentChanges& changes) {
  std::map<std::string, std::string, std::less<>> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view variable = *each;
    const size_t equals = variable.find('=');
    if (equals == std::string_view::npos || !IsInherited(variable.substr(0, equals))) continue;
    variables.emplace(variable.substr(0, equals), variable.substr(equals + 1));
  }
  for (const auto& [name, value] : changes) variables[name] = value;

  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

}  // namespace attune::gang
