#include "simulator/csv.h"

#include <algorithm>

namespace attune::simulate {

bool CsvReader::Next(std::vector<std::string>& cells) {
  cells.clear();
  while (!rest_.empty() && (rest_.front() == '\n' || rest_.front() == '\r')) {
    if (rest_.front() == '\n') ++next_line_;
    rest_.remove_prefix(1);
  }
  if (rest_.empty()) return false;
  line_ = next_line_;
  cells.push_back(ReadCell());
  while (!rest_.empty() && rest_.front() == ',') {
    rest_.remove_prefix(1);
    cells.push_back(ReadCell());
  }
  return true;
}

// Reads up to the next comma or the end of the line.
std::string CsvReader::ReadCell() {
  std::string cell;
  bool quoted = false;
  size_t end = 0;
  for (; end < rest_.size(); ++end) {
    const char c = rest_[end];
    if (c == '"' && quoted && end + 1 < rest_.size() && rest_[end + 1] == '"') {
      cell += rest_[++end];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == ',' || c == '\n' || c == '\r')) {
      break;
    } else {
      cell += c;
    }
  }
  next_line_ += static_cast<int>(std::ranges::count(rest_.substr(0, end), '\n'));
  rest_.remove_prefix(end);
  return cell;
}

}  // namespace attune::simulate
