#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace attune::channel {

// Bytes of one line, its newline not counted.
inline constexpr size_t kLineBytesMax = 1 << 20;

// Cuts a byte stream into lines.
class LineReader {
 public:
  void Append(std::string_view bytes) { buffer_.append(bytes); }

  // The next complete line without its newline, valid until the next call of either function.
  // Empty when there is none yet, or when the line at hand is_too_long().
  std::optional<std::string_view> Next();

  // The line at hand is longer than kLineBytesMax. Nothing more will come from Next().
  bool is_too_long() const { return too_long_; }
  // The problem in words, with the line's beginning. REQUIRES: is_too_long().
  std::string TooLong() const;

 private:
  std::string buffer_;
  size_t begin_ = 0;    // of the line at hand
  size_t scanned_ = 0;  // no newline between begin_ and here
  bool too_long_ = false;
};

// Reads once from a stream socket of any mode, without waiting, at most 64 KiB. How many bytes
// came, 0 if none are there yet; empty at the end.
std::optional<size_t> ReceiveSome(int socket, LineReader& lines);

// The beginning of a line, fit to be quoted in a message.
std::string Quote(std::string_view line);

}  // namespace attune::channel
