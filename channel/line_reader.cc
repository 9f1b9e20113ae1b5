#include "channel/line_reader.h"

#include <algorithm>

namespace attune::channel {
namespace {

constexpr size_t kQuotedBytes = 120;

}  // namespace

std::optional<std::string_view> LineReader::Next() {
  if (too_long_) return std::nullopt;
  const size_t newline = buffer_.find('\n', std::max(begin_, scanned_));
  const size_t end = newline == std::string::npos ? buffer_.size() : newline;
  if (end - begin_ > kLineBytesMax) {
    too_long_ = true;
    return std::nullopt;
  }
  if (newline == std::string::npos) {
    buffer_.erase(0, begin_);
    begin_ = 0;
    scanned_ = buffer_.size();
    return std::nullopt;
  }
  const std::string_view line = std::string_view(buffer_).substr(begin_, newline - begin_);
  begin_ = newline + 1;
  return line;
}

std::string LineReader::TooLong() const {
  return "a line longer than " + std::to_string(kLineBytesMax) +
         " bytes: " + Quote(std::string_view(buffer_).substr(begin_));
}

std::string Quote(std::string_view line) {
  std::string quoted = "'" + std::string(line.substr(0, kQuotedBytes));
  for (char& c : quoted) {
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') c = '?';
  }
  return quoted + (line.size() > kQuotedBytes ? "...'" : "'");
}

}  // namespace attune::channel
