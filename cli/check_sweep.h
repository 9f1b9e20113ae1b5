#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/client/api.h"
#include "core/log/sweep_spec.h"

namespace attune::cli {

// A sweep file, read without a server.
struct CheckedSweep {
  std::optional<SweepSpec> spec;  // absent when there are faults
  std::vector<Step> rungs;
  std::vector<std::string> faults;  // sweep.yaml:12:3: …
  std::vector<std::string> notes;   // parameters.width: … what is right and perhaps not meant
};

enum class ProgramCheck { kIsThere, kNone };  // whether the command's program must be there

CheckedSweep CheckSweep(const SweepDocument& document,
                        ProgramCheck program = ProgramCheck::kIsThere);

}  // namespace attune::cli
