#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "channel/messages.h"
#include "executor/gang/channel_types.h"
#include "executor/gang/spec.h"
#include "executor/processes/environment.h"
#include "system/spawn.h"

namespace attune::gang {

// The program and the arguments that all ranks of a gang are started with.
struct Preparation {
  std::filesystem::path program;  // empty: it is in a container
  std::vector<std::string> argv;
};

// Finds the program and expands its arguments. An error says why the gang cannot start on any host.
Result<Preparation> Prepare(const GangSpec& spec);

// Makes the folders of the gang. They may exist. Any thread.
Status MakeFolders(const GangSpec& spec);

// Makes the folders of the gang, and the configuration file if the command uses ${config}.
Status MakeFoldersAndConfig(const GangSpec& spec);

// Returns the start line, the first message to a rank.
channel::Start MakeStartLine(const GangSpec& spec, const RankSlot& slot);

// The environment of a rank in addition to the executor's, without the variables of the channel.
// Ranks of torch.distributed meet at `master_address` and `master_port`.
EnvironmentChanges RankEnvironment(const GangSpec& spec, const RankSlot& slot,
                                   const std::string& master_address, int master_port);

// The GPUs that this process may use, by CUDA's names (CUDA_VISIBLE_DEVICES); nullopt: all GPUs.
std::optional<std::vector<std::string>> AllowedGpus();

// Whether a file has the name of a Python, such as python3.13t or pypy3.
bool HasNameOfPython(const std::filesystem::path& file);

// Finds the executable `name` as a gang of the program would.
Result<std::filesystem::path> LocateProgram(const Program& program, const std::string& name);

}  // namespace attune::gang
