#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace fashion_mnist {

// The content of an IDX file of bytes. IDX is the file format of the MNIST family.
struct Idx {
  std::vector<std::int64_t> shape;  // images: {count, rows, columns}; labels: {count}
  std::vector<std::uint8_t> bytes;
};

// Reads an IDX file, gzipped or not. Throws std::runtime_error with the file's name and the
// problem. If the file is missing, the message says where to get it.
Idx ReadIdx(const std::filesystem::path& file);

// The folder in ATTUNE_DATA_DIR, or the folder of Debian's package dataset-fashion-mnist.
std::filesystem::path DataFolder();

}  // namespace fashion_mnist
