#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "channel/messages.h"
#include "executor/gang/spec.h"
#include "executor/gang/words.h"
#include "executor/processes/environment.h"
#include "system/spawn.h"

namespace attune::gang {

// What all ranks of a gang are started with.
struct Preparation {
  std::filesystem::path program;
  std::vector<std::string> argv;
};

// Finds the program, and what is said to it. An error is the reason why the gang cannot start, on
// this host or another.
Result<Preparation> Prepare(const GangSpec& spec);

// Makes the folders that the gang writes to, and the file of its configuration if its command names
// that one.
Status MakePlace(const GangSpec& spec);

// What a rank is told first.
channel::Start StartOf(const GangSpec& spec, const RankSlot& slot);

// What a rank finds in its environment beyond the executor's own, but for the channel.
// torch.distributed's ranks may meet at that address and port.
EnvironmentChanges RankEnvironment(const GangSpec& spec, const RankSlot& slot,
                                   const std::string& master_address, int master_port);

// What this process was given of the host's GPUs, in CUDA's names for them (CUDA_VISIBLE_DEVICES);
// nothing: all.
std::optional<std::vector<std::string>> GivenGpus();

// The file that a program's command names, as a gang of it would run.
Result<std::filesystem::path> LocateProgram(const Program& program, const std::string& name);

}  // namespace attune::gang
