#pragma once

#include <string>

#include "core/log/command.h"
#include "core/log/event.h"

namespace attune::sim {

// Describes an event in one line: its number, its time and its content. Different events have
// different descriptions.
std::string Describe(const Event& event);

}  // namespace attune::sim
