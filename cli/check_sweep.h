#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/client/api.h"
#include "core/log/sweep_spec.h"

namespace attune::cli {

// The result of checking a sweep file without a server.
struct CheckedSweep {
  std::optional<SweepSpec> spec;  // nullopt if there are faults
  std::vector<Step> rungs;
  std::vector<std::string> faults;  // sweep.yaml:12:3: …
  std::vector<std::string> notes;   // "parameters.width: …": valid, but possibly not intended
};

// Whether the program of `command` must exist on this host.
enum class ProgramCheck { kMustExist, kSkip };

CheckedSweep CheckSweep(const SweepDocument& document,
                        ProgramCheck program = ProgramCheck::kMustExist);

}  // namespace attune::cli
