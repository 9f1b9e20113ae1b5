#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "system/sha256.h"

namespace attune::inline sdk::trainable {

// A read-only file mapping. It uses the page cache of the system, so it needs no memory of the
// process, and ranks of one host share it.
class MappedFile {
 public:
  // Throws attune::Error if the file cannot be read.
  explicit MappedFile(const std::filesystem::path& file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

  // Tells the system that a part of bytes() is not needed soon, so it does not count as memory of
  // this process. The part can still be read again.
  void Release(std::string_view part) const;

  // The SHA-256 as 64 lower-case hex digits. Keeps only a small part of the file in memory at a
  // time.
  std::string HexSha256() const;

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace attune::inline sdk::trainable
