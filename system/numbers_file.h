#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/result.h"
#include "system/unique_fd.h"

namespace attune {

// A file with one line of numbers that change often. The numbers survive the death of the process,
// but not a power cut. Each number takes 20 digits, so the line is overwritten in place.
//
// One of the numbers is a counter. Write does nothing if only the counter has changed and the last
// write was less than 100 ms ago, because each write makes the next sync of the disk slower.
class NumbersFile {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kBetweenCounts{100};

  // `counter` is the index of the counter. REQUIRES: counter < count.
  NumbersFile(std::filesystem::path path, size_t count, size_t counter)
      : path_(std::move(path)), count_(count), counter_(counter) {}

  // nullopt: there is no file, or it cannot be read or is damaged.
  std::optional<std::vector<uint64_t>> Read() const;

  // Writes without a sync. After a failure the file may have the earlier numbers.
  // REQUIRES: numbers.size() == count
  void Write(std::vector<uint64_t> numbers, Clock::time_point now = Clock::now());

  // Durable when it returns.
  Status WriteDurably(const std::vector<uint64_t>& numbers) const;

 private:
  std::filesystem::path path_;
  size_t count_;
  size_t counter_;
  UniqueFd file_;                  // opened by the first Write
  std::vector<uint64_t> written_;  // by the last Write
  Clock::time_point written_at_;
};

}  // namespace attune
