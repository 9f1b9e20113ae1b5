#pragma once

#include <string>

#include "core/log/command.h"
#include "core/log/event.h"

namespace attune::sim {

// One line: its place, its time and what happened, with all that tells two events apart.
std::string Describe(const Event& event);

}  // namespace attune::sim
