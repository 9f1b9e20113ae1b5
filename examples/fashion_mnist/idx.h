#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace fashion_mnist {

// The content of an IDX file of bytes, the format of the MNIST family.
struct Idx {
  std::vector<std::int64_t> shape;  // images: {count, rows, columns}; labels: {count}
  std::vector<std::uint8_t> bytes;
};

// Reads an IDX file, gzipped or not. Throws std::runtime_error naming the file and what is wrong
// with it, or, when it is absent, where to get it.
Idx ReadIdx(const std::filesystem::path& file);

// ATTUNE_DATA_DIR, or where Debian's package dataset-fashion-mnist puts the files.
std::filesystem::path DataFolder();

}  // namespace fashion_mnist
