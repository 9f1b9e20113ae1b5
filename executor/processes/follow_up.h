#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "system/spawn.h"

namespace attune::gang {

// Runs the program and never returns if this process was started by StartAfterExit(). Otherwise
// returns immediately. MaybeRunGuard() calls it.
void MaybeRunFollowUp(int argc, char** argv);

// Starts a process that waits until the process with this pidfd has ended, and then runs a program
// without output. It does so even if this process has been killed before, and it ignores the
// signals that end this process. `arguments` are without the program. REQUIRES: main() has called
// MaybeRunGuard().
Result<Child> StartAfterExit(int pidfd, const std::filesystem::path& program,
                             const std::vector<std::string>& arguments);

}  // namespace attune::gang
