#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "attune/checkpoint.h"
#include "trainable/checkpoints/files.h"

// The safetensors format: an 8-byte little-endian header length, a JSON header with type, shape and
// offsets of each tensor, and the raw bytes. Reading executes no code. Any reader of the format can
// open the files, also in Python.
namespace attune::inline sdk::trainable {

// The maximum header size for reading and writing.
inline constexpr std::size_t kMaxSafetensorsHeaderBytes = 100 << 20;

// Writes a new file. Tensors are copied to the CPU and made contiguous one at a time, and each is
// aligned to its element size. Throws attune::Error for a type that the format does not support, or
// if the disk refuses.
void WriteSafetensors(const std::filesystem::path& file, const TensorMap& tensors);
void WriteSafetensors(NewFile file, const TensorMap& tensors);

// Returns CPU tensors that are views of `bytes`; unaligned ones are copied. They must not be
// written to, nor outlive the bytes. `where` begins error messages. Throws attune::Error for
// invalid bytes.
TensorMap ViewSafetensors(std::string_view bytes, const std::string& where);

}  // namespace attune::inline sdk::trainable
