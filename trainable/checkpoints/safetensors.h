#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "attune/checkpoint.h"
#include "trainable/checkpoints/files.h"

// The safetensors format: an 8-byte little-endian header length, a JSON header with type, shape and
// place of each tensor, and the raw bytes. Nothing in a file is executed, and any reader of the
// format, in Python too, opens it.
namespace attune::inline sdk::trainable {

// Largest header that is read, and written.
inline constexpr std::size_t kMaxSafetensorsHeaderBytes = 100 << 20;

// Writes a new file. Tensors are copied to the CPU and made contiguous one at a time; each lies
// aligned to its element. Throws attune::Error for a type that the format does not know, or when
// the disk refuses.
void WriteSafetensors(const std::filesystem::path& file, const TensorMap& tensors);
void WriteSafetensors(NewFile file, const TensorMap& tensors);

// Tensors on the CPU that lie in `bytes`, but for those that are not aligned there, which are
// copied. They must not be written to, nor outlive the bytes. `where` begins error messages;
// whatever is wrong with the bytes is an attune::Error.
TensorMap ViewSafetensors(std::string_view bytes, const std::string& where);

}  // namespace attune::inline sdk::trainable
