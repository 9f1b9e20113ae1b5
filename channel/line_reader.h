#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace attune::channel {

// Maximum bytes of a line without its newline.
inline constexpr size_t kLineBytesMax = 1 << 20;

// Cuts a byte stream into lines.
class LineReader {
 public:
  void Append(std::string_view bytes) { buffer_.append(bytes); }

  // The next complete line without its newline, valid until the next call of either function.
  // Nullopt if there is no complete line yet, or if the current line is_too_long().
  std::optional<std::string_view> Next();

  // The current line is longer than kLineBytesMax. Next() returns no more lines.
  bool is_too_long() const { return too_long_; }
  // The error message, with the line's beginning. REQUIRES: is_too_long().
  std::string TooLong() const;

 private:
  std::string buffer_;
  size_t begin_ = 0;    // beginning of the current line
  size_t scanned_ = 0;  // there is no newline between begin_ and this position
  bool too_long_ = false;
};

// Reads once from a stream socket, without waiting, at most 64 KiB. Returns the number of bytes, 0
// if there are none yet, and nullopt at the end of the stream.
std::optional<size_t> ReceiveSome(int socket, LineReader& lines);

// The beginning of a line in quotes, for a message. Replaces bytes that are not printable ASCII.
std::string Quote(std::string_view line);

}  // namespace attune::channel
