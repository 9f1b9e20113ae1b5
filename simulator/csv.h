#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attune::simulate {

// The records of a CSV text (RFC 4180), one after another. Empty lines are none. A quote that is
// never closed reaches to the end.
class CsvReader {
 public:
  // `text` outlives the reader.
  explicit CsvReader(std::string_view text) : rest_(text) {}

  // Reads the next record's cells; false: there are no more.
  bool Next(std::vector<std::string>& cells);

  // The line on which the last record began, from 1.
  int line() const { return line_; }

 private:
  std::string Cell();

  std::string_view rest_;
  int line_ = 0;
  int next_line_ = 1;
};

}  // namespace attune::simulate
