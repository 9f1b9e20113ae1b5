#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace attune::gang {

// The launcher protocol that an executable offers: the descriptor of its ELF note with owner
// `Attune` and type 1 (docs/reference/worker-channel.md, "Launchers").
//
// Empty when there is no such note, or the file is no 64-bit little-endian ELF file, is truncated,
// or cannot be read. Reads the headers and the notes only.
std::optional<uint32_t> ReadLauncherNote(const std::filesystem::path& program);

}  // namespace attune::gang
