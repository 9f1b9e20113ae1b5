#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace attune::gang {

// Reads the version of the launcher protocol that an executable offers: the descriptor of its ELF
// note with owner `Attune` and type 1 (docs/reference/worker-channel.md, "Launchers").
//
// Returns nullopt without such a note, or if the file is not a complete and readable 64-bit
// little-endian ELF file. Reads only headers and notes.
std::optional<uint32_t> ReadLauncherNote(const std::filesystem::path& program);

}  // namespace attune::gang
