#pragma once

#include <filesystem>

namespace attune {

// The path to run for another process of this program, even after its file was replaced: the
// program's own file, or the script that runs it with its own loader and libraries (packaging/).
std::filesystem::path OwnProgram();

}  // namespace attune
