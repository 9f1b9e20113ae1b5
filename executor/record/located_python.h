#pragma once

#include <filesystem>
#include <optional>

#include "executor/gang/spec.h"

namespace attune::agent {

// Finds the Python that runs a program: the command itself, or the interpreter of its script
// (`#!`). Returns nullopt if that is not a Python, or if the command chooses the interpreter later,
// as `poetry run` does.
std::optional<std::filesystem::path> LocatePython(const gang::Program& program);

}  // namespace attune::agent
