#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sweepfile/document.h"

namespace attune::sweepfile {

// What keeps a text from being read at all: bytes that are not UTF-8, control characters.
struct TextFault {
  size_t offset = 0;  // in bytes
  std::string message;
};
std::optional<TextFault> CheckText(std::string_view text);

// Where the lines of a text begin, to tell places in characters. The text must outlive it.
class Lines {
 public:
  explicit Lines(std::string_view text);

  // Both count characters from the last place that they told in the same line: a text of one line
  // has many places.
  Mark AtOffset(size_t offset);     // in bytes, from 0
  Mark AtByte(int line, int byte);  // both from 0; within that line

 private:
  std::string_view text_;
  std::vector<size_t> begins_;
  int told_line_ = 0;
  size_t told_byte_ = 0;     // in that line
  int told_characters_ = 0;  // before that byte
};

// JSON writes a character outside the basic plane as two \u escapes, which YAML does not know.
// Returns the text with each such pair replaced by the character itself.
std::string JoinSurrogates(std::string_view json);

}  // namespace attune::sweepfile
