#include "system/numbers_file.h"

#include <fcntl.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <sstream>
#include <string>
#include <utility>

#include "system/files.h"

namespace attune {
namespace {

std::string LineOf(const std::vector<uint64_t>& numbers) {
  std::string line;
  for (const uint64_t number : numbers) {
    std::array<char, 24> digits;
    std::snprintf(digits.data(), digits.size(), "%020" PRIu64, number);
    line += (line.empty() ? "" : " ") + std::string(digits.data());
  }
  return line + "\n";
}

}  // namespace

std::optional<std::vector<uint64_t>> NumbersFile::Read() const {
  const Result<std::string> text = ReadWhole(path_);
  if (!text.ok()) return std::nullopt;
  std::istringstream line(*text);
  std::vector<uint64_t> numbers(count_);
  for (uint64_t& number : numbers) line >> number;
  return line ? std::optional(numbers) : std::nullopt;
}

void NumbersFile::Write(std::vector<uint64_t> numbers, Clock::time_point now) {
  if (!written_.empty() && now - written_at_ < kBetweenCounts) {
    written_[counter_] = numbers[counter_];
    if (written_ == numbers) return;
  }
  if (!file_) file_ = UniqueFd(open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, kPrivate));
  if (!file_) return;
  if (!WriteAt(file_.get(), LineOf(numbers), 0)) return;
  written_ = std::move(numbers);
  written_at_ = now;
}

Status NumbersFile::WriteDurably(const std::vector<uint64_t>& numbers) const {
  return WriteWhole(path_, LineOf(numbers), kPrivate);
}

}  // namespace attune
