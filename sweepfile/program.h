#pragma once

#include <string>

#include "core/log/sweep_spec.h"
#include "core/space/search_space.h"
#include "sweepfile/reader.h"
#include "sweepfile/sweepfile.h"

namespace attune::sweepfile {

// The program of a file: `command`, `env` and `working_directory`, with paths made absolute. Empty
// where the file has no `command`.
Program ReadProgram(const Fields& file, const ParseOptions& options, Faults& faults);

// Placeholders of the command that the executor could not replace: unknown ones, parameters that
// are not there, or not always.
void CheckPlaceholders(const Spot& command, const SearchSpace& space, Faults& faults);

}  // namespace attune::sweepfile
