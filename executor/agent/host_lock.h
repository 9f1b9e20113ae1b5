#pragma once

#include <filesystem>
#include <string>

#include "executor/gang/or_error.h"
#include "executor/gang/unique_fd.h"

namespace attune::agent {

// Takes `<data>/executors/<name>/lock` for as long as the result lives, so that two executors of
// one name cannot run on one data folder. The kernel gives it back however the process ends.
gang::OrError<gang::UniqueFd> LockName(const std::filesystem::path& data, const std::string& name);

}  // namespace attune::agent
