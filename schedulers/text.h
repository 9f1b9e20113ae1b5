#pragma once

#include <cstdint>
#include <string>

#include "core/base/ids.h"

// Numbers as the texts of reasons and errors show them.
namespace attune::schedulers {

inline std::string Text(int64_t number) { return std::to_string(number); }
inline std::string Text(Step step) { return std::to_string(step.value); }
inline std::string Text(TrialNumber trial) { return std::to_string(trial.value); }

}  // namespace attune::schedulers
