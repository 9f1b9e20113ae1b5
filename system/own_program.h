#pragma once

#include <filesystem>

namespace attune {

// What to start for another process of this program, also after its file was replaced: a file of
// its own, or the script that ran it with a loader and libraries of its own (packaging/).
std::filesystem::path OwnProgram();

}  // namespace attune
