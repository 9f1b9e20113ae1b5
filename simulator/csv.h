#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attune::simulate {

// Reads the records of a CSV text (RFC 4180) one after another. It skips empty lines. A quoted cell
// without a closing quote extends to the end of the text.
class CsvReader {
 public:
  // `text` must outlive the reader.
  explicit CsvReader(std::string_view text) : rest_(text) {}

  // Reads the cells of the next record. Returns false at the end of the text.
  bool Next(std::vector<std::string>& cells);

  // The line, counted from 1, on which the last record began.
  int line() const { return line_; }

 private:
  std::string ReadCell();

  std::string_view rest_;
  int line_ = 0;
  int next_line_ = 1;
};

}  // namespace attune::simulate
