#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sweepfile/document.h"

namespace attune::sweepfile {

// A reason why a text cannot be read at all: invalid UTF-8, or a control character.
struct TextFault {
  size_t offset = 0;  // in bytes
  std::string message;
};
std::optional<TextFault> CheckText(std::string_view text);

// Converts offsets in a text to lines and columns. REQUIRES: the text outlives it.
class Lines {
 public:
  explicit Lines(std::string_view text);

  // Both count characters from their last result in the same line, so that a long line with many
  // places stays fast.
  Mark AtOffset(size_t offset);     // in bytes, from 0
  Mark AtByte(int line, int byte);  // both from 0; within that line

 private:
  std::string_view text_;
  std::vector<size_t> begins_;
  int told_line_ = 0;
  size_t told_byte_ = 0;     // in that line
  int told_characters_ = 0;  // before that byte
};

// JSON may write a character outside the basic plane as two \u escapes, which YAML does not know.
// Replaces each such pair by the character.
std::string JoinSurrogates(std::string_view json);

}  // namespace attune::sweepfile
