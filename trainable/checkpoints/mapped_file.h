#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

namespace attune::trainable {

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

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace attune::trainable
