#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "executor/record/child_programs.h"

namespace attune::agent {

struct GitCommit {
  std::string commit;         // hexadecimal
  std::optional<bool> dirty;  // files that git tracks differ from the commit; nullopt: not known
};

// The git commit of a folder; an empty path is the current folder. nullopt: the folder is not in a
// repository of this user, or this host has no git. Runs no hooks and takes no locks.
std::optional<GitCommit> ReadGitCommit(const std::filesystem::path& folder, ChildPrograms& children,
                                       std::chrono::milliseconds timeout);

}  // namespace attune::agent
