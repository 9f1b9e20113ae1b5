#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "system/sha256.h"

namespace attune::inline sdk::trainable {

// The bytes of a file, read only, by the system's page cache: they cost a process no memory of its
// own, and ranks of one host share them.
class MappedFile {
 public:
  // Throws attune::Error when the file cannot be read.
  explicit MappedFile(const std::filesystem::path& file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

  // Says that a part of bytes() is not needed soon, so that the system does not count it as this
  // process's; it may be read again all the same.
  void Release(std::string_view part) const;

  // 64 lower-case hex digits; holds little of the file at a time.
  std::string HexSha256() const;

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace attune::inline sdk::trainable
