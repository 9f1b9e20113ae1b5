#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <vector>

#include "base/result.h"
#include "system/unique_fd.h"

namespace attune {

// A file with one line of so many numbers, to be written often: for what may be lost in a power cut
// and has to survive the death of the process. Each number takes 20 digits, so that the line is
// written over in place, which takes a microsecond.
class NumbersFile {
 public:
  NumbersFile(std::filesystem::path path, size_t count) : path_(std::move(path)), count_(count) {}

  // nullopt: there is no file, or it cannot be read or is damaged.
  std::optional<std::vector<uint64_t>> Read() const;

  // Without a sync. After a failure the file may have the numbers before.
  // REQUIRES: as many as there are.
  void Write(std::initializer_list<uint64_t> numbers);

  // Durable when it returns.
  Status WriteDurably(std::initializer_list<uint64_t> numbers) const;

 private:
  std::filesystem::path path_;
  size_t count_;
  UniqueFd file_;  // opened by the first Write
};

}  // namespace attune
