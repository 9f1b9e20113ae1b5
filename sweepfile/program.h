#pragma once

#include <string>

#include "core/log/sweep_spec.h"
#include "core/space/search_space.h"
#include "sweepfile/reader.h"
#include "sweepfile/sweepfile.h"

namespace attune::sweepfile {

// Checks the program as it was read, and makes its paths absolute. REQUIRES: the file has a
// command.
void CompleteProgram(const Fields& file, const ParseOptions& options, Program& program,
                     Faults& faults);

// Placeholders of the command that the executor could not replace: unknown ones, parameters that
// are not there, or not always.
void CheckPlaceholders(const Spot& command, const SearchSpace& space, Faults& faults);

}  // namespace attune::sweepfile
