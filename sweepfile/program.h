#pragma once

#include <string>

#include "core/log/sweep_spec.h"
#include "core/space/search_space.h"
#include "sweepfile/reader.h"
#include "sweepfile/sweepfile.h"

namespace attune::sweepfile {

// Checks the program and makes its paths absolute. REQUIRES: the file has a command.
void CompleteProgram(const Fields& file, const ParseOptions& options, Program& program,
                     Faults& faults);

// Adds a fault for each placeholder in the command that the executor could not always replace:
// unknown names, and parameters that do not exist or are not always active.
void CheckPlaceholders(const Spot& command, const SearchSpace& space, Faults& faults);

}  // namespace attune::sweepfile
