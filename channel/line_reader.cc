#include "channel/line_reader.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace attune::channel {
namespace {

constexpr size_t kQuotedBytes = 120;
constexpr size_t kReadBytes = 64 * 1024;

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

std::optional<size_t> ReceiveSome(int socket, LineReader& lines) {
  std::array<char, kReadBytes> bytes;
  ssize_t count;
  do {
    count = recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  if (count < 0 && errno == EAGAIN) return 0;
  if (count <= 0) return std::nullopt;
  lines.Append({bytes.data(), static_cast<size_t>(count)});
  return count;
}

std::string Quote(std::string_view line) {
  std::string quoted = "'" + std::string(line.substr(0, kQuotedBytes));
  for (char& c : quoted) {
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') c = '?';
  }
  return quoted + (line.size() > kQuotedBytes ? "...'" : "'");
}

}  // namespace attune::channel
